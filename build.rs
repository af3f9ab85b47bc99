//! Sets the executable's entry point, and warns about a build that cannot be the probe.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // It is in the crate `dunnage-launch`.
    println!("cargo:rustc-link-arg-bins=-Wl,-e,dunnage_entry");
    let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    if !features.split(',').any(|feature| feature == "crt-static") {
        println!(
            "cargo:warning=not a static executable, so containers without libc cannot start it. Build inside the checkout: its \
             .cargo/config.toml sets `-C target-feature=+crt-static -C relocation-model=static`"
        );
    }
}
