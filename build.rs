//! Tells the linker where the executable starts, and warns of a build that could not be the probe.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Of the crate `dunnage-launch`.
    println!("cargo:rustc-link-arg-bins=-Wl,-e,dunnage_entry");
    let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    if !features.split(',').any(|feature| feature == "crt-static") {
        println!(
            "cargo:warning=not a static executable: build inside the checkout, whose .cargo/config.toml sets \
             `-C target-feature=+crt-static -C relocation-model=static`; containers without libc cannot start this one"
        );
    }
}
