//! dunnage measures what Linux containers cost, layer by layer, before the application inside
//! does any work. The modules stand in reading order.

pub mod units;

pub mod sys;
