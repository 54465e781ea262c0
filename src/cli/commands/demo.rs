use clap::Args;
use crate::cli::context::Context;
use crate::cli::error::Failure;
use crate::cli::output::Output;

/// demo
#[derive(Args)]
pub struct Arguments {}
impl Arguments {
    /// x
    pub fn run(&self, _c: &Context, _o: &mut Output) -> Result<(), Failure> { Ok(()) }
}
