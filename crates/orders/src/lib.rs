//! What the program asks of its probe inside a container, and what the probe answers: one type for each, which both halves of
//! the executable use. They travel as JSON once libc has started; a launch without libc has words of its own.
//!
//! Deliberately absent: how an order is carried out, and what its answer means.

pub mod files;
pub mod network;
pub mod work;

use dunnage_analysis::outcome::Failure;
use dunnage_analysis::units::whole_nanos;
use dunnage_analysis::units::{Nanos, Stamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use files::{
    Append, Appends, Change, Clear, Cleared, Each, EachTime, Forget, Forgotten, Modified, Modify, Moved,
    Prepare, Random, Read, Scatter, Single, Touch, Touched, Write,
};
use network::{
    Answered, AwaitAnswer, Connect, Connects, EndServers, Facts, Links, Names, Queries, Request, Requests,
    Resolve, Serve, StartProgram, Started, Stream, Streams, Trip, Trips, Usage, Used,
};
use work::{Calls, Carried, Command, Computed, Cpu, Execute, Executed, Ran, Spin, Spun, Syscall, Throttle};

/// An order, whose answer has a type of its own.
pub trait Ask: Into<Order> {
    /// The answer.
    type Answer: Serialize + DeserializeOwned;
}

macro_rules! orders {
    ($($order:ident -> $answer:ty,)*) => {
        /// An order of any kind.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Order {
            $(
                #[doc = concat!("As [`", stringify!($order), "`] says.")]
                $order($order),
            )*
        }

        $(
            impl Ask for $order {
                type Answer = $answer;
            }

            impl From<$order> for Order {
                fn from(order: $order) -> Order {
                    Order::$order(order)
                }
            }
        )*
    };
}

orders! {
    Spin -> Spun,
    Syscall -> Calls,
    Command -> Ran,
    Execute -> Executed,
    Throttle -> Carried,
    Cpu -> Computed,
    Write -> Moved,
    Read -> Moved,
    Forget -> Forgotten,
    Append -> Appends,
    Scatter -> Random,
    Each -> EachTime,
    Change -> Single,
    Modify -> Modified,
    Touch -> Option<Touched>,
    Prepare -> (),
    Clear -> Cleared,
    Serve -> Started,
    StartProgram -> Started,
    EndServers -> (),
    Usage -> Used,
    Links -> Facts,
    Trip -> Trips,
    Connect -> Connects,
    Stream -> Streams,
    Request -> Requests,
    AwaitAnswer -> Answered,
    Resolve -> Names,
    Queries -> u32,
}

/// What a probe says when it has carried out an order of its channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer<T> {
    /// When it had read the order.
    pub began: Stamp,
    /// When it had carried it out.
    pub ended: Stamp,
    /// CPU time of the probe in between.
    #[serde(with = "whole_nanos")]
    pub cpu: Nanos,
    /// The answer, or why there is none.
    pub done: T,
}

/// An answer as it travels.
pub type Reply<T> = Answer<Result<T, Failure>>;
