//! Does dunnage's load over HTTP make as many requests a second as wrk? Both ask the same server of dunnage's, on the
//! first CPU, from the last one, with the same threads and connections, for `/network`.

use anyhow::{Context, Result, ensure};
use dunnage::orders::network::{Limit, Load, Request, Service, Settings};
use dunnage::subject::on_path;
use dunnage::units::Nanos;

use crate::bench::Bench;
use crate::network::{asked, cpus, end, pinned, said, with_ends};
use crate::sides::take_turns;
use crate::table::{Row, Target};

/// How long each side makes requests.
const WINDOW: Nanos = Nanos::from_millis(1000);
/// The bytes of the server's answer.
const BODY: usize = 8;

/// Seconds a request, with few connections and with many. A rate of at least 0.95 of wrk's is the goal.
pub fn against_wrk(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    on_path("wrk").context("`wrk` is not installed")?;
    let [server_cpu, client_cpu] = cpus()?;
    [8, 100]
        .into_iter()
        .map(|connections| {
            let service = Service::Http(Settings::default());
            let pairs = with_ends(bench, service, server_cpu, |bench, client, own| {
                let load = Load {
                    path: "/network".to_owned(),
                    connections,
                    threads: 1,
                    limit: Limit { count: 0, time: WINDOW },
                    rate: None,
                    status: 200,
                    body: Some(BODY),
                    computes: Nanos(0),
                };
                let order = Request { client: end(own, client_cpu), load };
                take_turns(
                    bench,
                    rounds,
                    Box::new(|bench| {
                        bench.fall_silent();
                        let mut wrk = pinned(client_cpu, "wrk");
                        wrk.args(["-t", "1", "-c", &connections.to_string(), "-d", "1s"]);
                        seconds_of(&said(wrk.arg(format!("http://{own}/network")))?)
                    }),
                    Box::new(|bench| {
                        let done = asked(bench, client, order.clone())?;
                        ensure!(done.requests > 0 && done.wrong == [0; 6], "{done:?}");
                        Ok(done.took.seconds() / done.requests as f64)
                    }),
                )
            })?;
            let name = format!("seconds a request, {connections} connections / wrk");
            Ok(Row::of_pairs(&name, bench, &pairs, &Target::Ratio(0.0, 1.0 / 0.95)))
        })
        .collect()
}

/// From wrk's requests a second, all of which must have been answered.
fn seconds_of(text: &str) -> Result<f64> {
    let wrong = ["Socket errors", "Non-2xx"].into_iter().find(|words| text.contains(words));
    ensure!(wrong.is_none(), "wrk says `{}`", text.trim());
    let rate = text.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
    let rate = rate.and_then(|rate| rate.trim().parse::<f64>().ok());
    Ok(1.0 / rate.filter(|rate| *rate > 0.0).with_context(|| format!("wrk says `{}`", text.trim()))?)
}
