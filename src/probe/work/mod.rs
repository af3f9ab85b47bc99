//! The works that the probe can do inside: each kind is one file, and a line in `carry_out`.
//!
//! Deliberately absent: the purpose of a work. Experiments choose what is asked, and make metrics from the answers.

mod command;
mod cpu;
mod execute;
mod files;
mod limit;
mod network;
mod spin;
mod syscall;
mod throttle;

use dunnage_orders::files::Limit;
use dunnage_orders::{Ask, Order};
use serde_json::Value;

use crate::outcome::{Failure, FailureClass};

/// The size of a message with the answer of a work: some thousand numbers of a series.
pub(super) const CAPACITY: usize = 192 << 10;

/// Carries out an order, and answers.
pub(super) fn carry_out(order: Order) -> Result<Value, Failure> {
    match order {
        Order::Spin(order) => told(&order, Ok(spin::work(order))),
        Order::Syscall(order) => told(&order, syscall::work(&order)),
        Order::Command(order) => told(&order, command::work(&order)),
        Order::Execute(order) => told(&order, execute::work(&order)),
        Order::Throttle(order) => told(&order, throttle::work(order)),
        Order::Cpu(order) => told(&order, cpu::work(order)),
        Order::Write(order) => told(&order, files::write(&order)),
        Order::Read(order) => told(&order, files::read(&order)),
        Order::Forget(order) => told(&order, files::forget(&order)),
        Order::Append(order) => told(&order, files::append(&order)),
        Order::Scatter(order) => told(&order, files::scatter(&order)),
        Order::Each(order) => told(&order, files::each(&order)),
        Order::Change(order) => told(&order, files::change(&order)),
        Order::Modify(order) => told(&order, files::modify(&order)),
        Order::Touch(order) => told(&order, files::touch(&order)),
        Order::Prepare(order) => told(&order, files::prepare(&order)),
        Order::Clear(order) => told(&order, files::clear(&order)),
        Order::Serve(order) => told(&order, network::serve(&order)),
        Order::StartProgram(order) => told(&order, network::start_program(&order)),
        Order::EndServers(order) => told(&order, network::end_servers()),
        Order::Usage(order) => told(&order, network::usage()),
        Order::Links(order) => told(&order, Ok(network::links(&order))),
        Order::Trip(order) => told(&order, network::trip(&order)),
        Order::Connect(order) => told(&order, network::connect(&order)),
        Order::Stream(order) => told(&order, network::stream(&order)),
        Order::Request(order) => told(&order, network::request(&order)),
        Order::AwaitAnswer(order) => told(&order, network::await_answer(&order)),
        Order::Resolve(order) => told(&order, network::resolve(&order)),
        Order::Queries(order) => told(&order, network::queries(&order)),
    }
}

/// An answer as it travels; its type is that of the order.
fn told<O: Ask>(_: &O, answer: Result<O::Answer, Failure>) -> Result<Value, Failure> {
    let unwritten =
        |error| Failure::new(FailureClass::WrongOutput, format!("an answer cannot be written: {error}"));
    serde_json::to_value(answer?).map_err(unwritten)
}

/// That this subject does not support a work.
fn unsupported(why: impl Into<String>) -> Failure {
    Failure::new(FailureClass::Unsupported, why)
}

/// A limit that ends.
fn ending(limit: Limit) -> Result<Limit, Failure> {
    if limit.is_one() { Ok(limit) } else { Err(unsupported("a count or a time must be above zero")) }
}

/// Facts are one line.
fn printable(text: impl AsRef<[u8]>) -> String {
    let text: Vec<u8> =
        text.as_ref().iter().map(|byte| if byte.is_ascii_control() { b' ' } else { *byte }).collect();
    String::from_utf8_lossy(&text).into_owned()
}
