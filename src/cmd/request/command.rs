//! Turns the options of `command` into settings, so that the plan, the record and a resumed run have them like all others.

use anyhow::Result;

use crate::cli::CommandOptions;
use crate::exit::usage;
use crate::experiment::command::ready::EXIT;
use crate::experiment::command::{NAME, line};
use crate::experiment::network::http;
use crate::experiment::{self, service};
use crate::plan::{self, Chosen};
use crate::plan_file::Typed;
use crate::variables::{self, Variables};

/// Replaces `command` by `service` if `--ready` asks for that.
pub fn services(experiments: &mut [&'static str], options: &CommandOptions) -> Result<()> {
    let Some(ready) = &options.ready else { return Ok(()) };
    let wanted = if ready == EXIT { NAME } else { service::NAME };
    if experiments.contains(&wanted) {
        return Ok(());
    }
    match experiments.iter_mut().find(|name| **name == NAME) {
        Some(name) => *name = wanted,
        None => {
            return Err(usage(format!(
                "`--ready {ready}` is for the experiment `{NAME}`, which is not part of this run\n\nhint: use `dunnage run {NAME} --cmd … --ready …`"
            )));
        }
    }
    Ok(())
}

/// The settings from the options, as `key=value`.
pub fn settings(options: &CommandOptions, experiments: &[&'static str]) -> Result<Vec<Typed>> {
    let mut pairs = Vec::new();
    let takes = |key: &str| {
        let of = |name: &&'static str| {
            experiment::find(name).into_iter().flat_map(|own| own.keys.iter().chain(own.guarded))
        };
        experiments.iter().flat_map(of).any(|own| own.name == key)
    };
    let (runs, serves) = (takes("cmd"), takes("serve"));
    let mut add = |key: &str, value: &str| pairs.push(format!("{key}={value}"));
    if serves && !runs && options.port.is_none() && options.cmd.is_some() {
        return Err(usage(
            "it is not known at which port the command answers\n\nhint: add it, as in `--cmd 'node app.js' --port 3000`",
        ));
    }
    // A command that answers requests is for another experiment than one that ends.
    let key = if options.port.is_some() { "serve" } else { "cmd" };
    options.cmd.iter().for_each(|cmd| add(key, cmd));
    options.shell.then(|| add("shell", "yes"));
    options.mode.iter().for_each(|mode| add("mode", mode));
    options.ready.iter().filter(|ready| *ready != EXIT).for_each(|ready| add("ready", ready));
    options.workdir.iter().for_each(|directory| add("workdir", directory));
    options.port.iter().for_each(|port| add("port", &port.to_string()));
    for (key, option, words, check) in [
        (variables::KEY, "--env", &options.env, line::variable as fn(&str) -> Result<(), String>),
        ("mount", "--mount", &options.mount, |text| line::mount(text).map(drop)),
    ] {
        for word in words {
            check(word).map_err(|form| {
                let word = if key == variables::KEY { "" } else { word };
                usage(format!(
                    "invalid value `{}`\n\nhint: `{option}` takes {form}",
                    format!("{option} {word}").trim()
                ))
            })?;
        }
        if !words.is_empty() {
            add(key, &line::join(words));
        }
    }
    for combination in combinations(&options.sweep, options.cmd.as_deref())? {
        add("sweep", &line::join(&combination));
    }
    if options.port.is_some() && !serves {
        return Err(usage(format!(
            "`--port` is for the experiment `{0}`, which is not part of this run\n\nhint: use `dunnage run {0} --cmd … --port …`",
            http::NAME
        )));
    }
    if !pairs.is_empty() && !runs && !serves {
        return Err(usage(format!(
            "`--cmd` and its options are for the experiment `{NAME}`, which is not part of this run\n\nhint: use `dunnage run {NAME} --cmd …`"
        )));
    }
    Ok(pairs.iter().map(|pair| Typed::on_command_line(pair)).collect())
}

/// Takes the values of variables out of the settings, and out of this process's environment where only a name is given.
pub fn without_values(pairs: &mut [Typed]) -> Result<Variables> {
    let mut variables = Variables::default();
    let outside = |name: &str| {
        let value = std::env::var_os(name).ok_or_else(|| {
            format!("the environment has no variable `{name}`\n\nhint: export it, or give its value as in `--env {name}=VALUE`")
        })?;
        value.into_string().map_err(|_| format!("the value of `{name}` is not UTF-8"))
    };
    for pair in pairs {
        let Some(text) = pair.text.strip_prefix(variables::KEY).and_then(|rest| rest.strip_prefix('='))
        else {
            continue;
        };
        let names = variables.keep(text, outside).map_err(|why| pair.wrong(why))?;
        pair.text = format!("{}={names}", variables::KEY);
    }
    Ok(variables)
}

/// Fails if a path to mount does not exist, because every launch would fail.
pub fn mounts_are_there(chosen: &[Chosen]) -> Result<()> {
    let given = chosen.iter().filter(|(key, _)| key == "mount").flat_map(|(_, values)| values);
    for word in given.filter_map(|text| line::split(text).ok()).flatten() {
        let Ok(mount) = line::mount(&word) else { continue };
        if !mount.host.exists() {
            return Err(usage(format!(
                "cannot mount `{}`: it does not exist on the host\n\nhint: create it first, or name another path",
                mount.host.display()
            )));
        }
    }
    Ok(())
}

/// All combinations of the values of every `NAME=V1,V2`; each name must occur in the command.
fn combinations(sweeps: &[String], command: Option<&str>) -> Result<Vec<Vec<String>>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    let mut known: Vec<(&str, Vec<&str>)> = Vec::new();
    for sweep in sweeps {
        let wrong = |why: &str| usage(format!("invalid value `--sweep {sweep}`\n\nhint: {why}"));
        let (name, values) =
            sweep.split_once('=').ok_or_else(|| wrong("use the form `--sweep NAME=V1,V2`"))?;
        line::swept(&format!("{name}=")).map_err(|_| wrong("use the form `--sweep NAME=V1,V2`"))?;
        if command.is_some_and(|command| !command.contains(&format!("{{{name}}}"))) {
            return Err(wrong(&format!("write `{{{name}}}` into the command where the values belong")));
        }
        if values.is_empty() {
            return Err(wrong("name at least one value: `--sweep NAME=V1,V2`"));
        }
        let values: Vec<&str> = values.split(',').collect();
        if let Some(twice) = values.iter().enumerate().find(|(at, value)| values[..*at].contains(value)) {
            return Err(wrong(&format!("`{}` is named twice", twice.1)));
        }
        if let Some((_, others)) = known.iter().find(|(other, _)| *other == name) {
            let all: Vec<&str> = others.iter().chain(&values).copied().collect();
            return Err(usage(format!(
                "`{name}` is swept twice\n\nhint: write all values in one option: `--sweep {name}={}`",
                all.join(",")
            )));
        }
        known.push((name, values.clone()));
        let before = if all.is_empty() { vec![Vec::new()] } else { std::mem::take(&mut all) };
        for one in &before {
            for value in &values {
                all.push(one.iter().cloned().chain([format!("{name}={value}")]).collect());
            }
        }
    }
    Ok(all)
}

/// Loads a user's program for longer than dunnage's server unless the user has chosen how long, so that each load has several of the
/// pauses that a program makes, such as those of a garbage collector.
pub fn longer_loads(experiments: &[&'static str], quick: bool, chosen: &mut Vec<Chosen>) {
    let key = plan::key_of(&http::HTTP, &http::TIME);
    let is_meant = experiments.contains(&http::NAME) && chosen.iter().any(|(own, _)| own == http::SERVE);
    if is_meant && chosen.iter().all(|(own, _)| *own != key && own != http::TIME.name) {
        let lasts = if quick { http::OF_A_PROGRAM_QUICK } else { http::OF_A_PROGRAM };
        chosen.push((key, vec![lasts.to_owned()]));
    }
}

/// Drops `command` and `service` from `all` if there is no command, or no way to see that the service is ready. Naming
/// one of them without that is an error.
pub fn with_a_command(
    mut experiments: Vec<&'static str>,
    named: &[Typed],
    chosen: &[Chosen],
) -> Result<Vec<&'static str>> {
    let needs = [
        (NAME, "cmd", "a command", "`--cmd 'sleep 0.1'`"),
        (service::NAME, "cmd", "a command", "`--cmd redis-server`"),
        (
            service::NAME,
            "ready",
            "to know when the service is ready",
            "`--ready 'log REGEX'` or `--ready 'port N'`",
        ),
    ];
    for (name, needed, what, example) in needs {
        if !experiments.contains(&name) || chosen.iter().any(|(key, _)| key == needed) {
            continue;
        }
        if named.iter().all(|typed| typed.text != "all") {
            return Err(usage(format!("`{name}` needs {what}\n\nhint: add it, as in {example}")));
        }
        experiments.retain(|own| *own != name);
        crate::cmd::tell(&format!("left out: `{name}`, because it needs {what} (`--{needed}`)"));
    }
    Ok(experiments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(options: &CommandOptions) -> Vec<String> {
        settings(options, &[NAME]).unwrap().into_iter().map(|typed| typed.text).collect()
    }

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn options_become_settings() {
        let options = CommandOptions {
            cmd: Some("gzip -{level} {file}".into()),
            shell: true,
            mode: strings(&["run", "exec"]),
            mount: strings(&["/a:/b:ro", "/c:/d"]),
            workdir: Some("/srv".into()),
            ready: Some("port 80".into()),
            env: strings(&["A=1", "B=2 3"]),
            port: None,
            sweep: strings(&["level=1,9", "file=x"]),
        };
        let expected = [
            "cmd=gzip -{level} {file}",
            "shell=yes",
            "mode=run",
            "mode=exec",
            "ready=port 80",
            "workdir=/srv",
            "env=A=1 'B=2 3'",
            "mount=/a:/b:ro /c:/d",
            "sweep=level=1 file=x",
            "sweep=level=9 file=x",
        ];
        assert_eq!(texts(&options), expected);
        assert_eq!(texts(&CommandOptions::default()), [""; 0]);
    }

    #[test]
    fn what_cannot_be_is_a_usage_error_with_the_form() {
        let error = |options: CommandOptions| settings(&options, &[NAME]).unwrap_err().to_string();
        let with = |mount: &str, env: &str, sweep: &str| {
            let list = |text: &str| if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
            let cmd = Some("true {x}".to_owned());
            error(CommandOptions {
                cmd,
                mount: list(mount),
                env: list(env),
                sweep: list(sweep),
                ..CommandOptions::default()
            })
        };
        assert!(with("data:/in", "", "").contains("HOST:INSIDE"));
        assert!(
            with("", "=secret", "").contains("NAME=VALUE or NAME")
                && !with("", "=secret", "").contains("secret")
        );
        assert!(with("", "", "n").contains("NAME=V1,V2"));
        assert!(with("", "", "n=1,2").contains("write `{n}` into the command"));
        assert!(with("", "", "x=").contains("name at least one value"));
        assert!(with("", "", "x=1,2,1").contains("`1` is named twice"));
        let twice = error(CommandOptions {
            cmd: Some("{a}".into()),
            sweep: strings(&["a=1", "a=2"]),
            ..CommandOptions::default()
        });
        assert!(twice.contains("`a` is swept twice") && twice.contains("`--sweep a=1,2`"), "{twice}");
        let elsewhere = CommandOptions { cmd: Some("true".into()), ..CommandOptions::default() };
        assert!(settings(&elsewhere, &["start"]).is_err());
    }

    #[test]
    fn a_command_is_needed_where_it_was_asked_for_and_left_out_where_all_were() {
        let named = [Typed::on_command_line(NAME)];
        assert!(with_a_command(vec![NAME], &named, &[]).is_err());
        let all = [Typed::on_command_line("all")];
        assert_eq!(with_a_command(vec!["start", NAME], &all, &[]).unwrap(), ["start"]);
        let chosen = [("cmd".to_owned(), vec!["true".to_owned()])];
        assert_eq!(with_a_command(vec![NAME], &named, &chosen).unwrap(), [NAME]);
    }
}
