use crate::cli::context::Context;
use crate::cli::error::Failure;
use crate::cli::output::Output;
use clap::Args;

/// demo
#[derive(Args)]
pub(crate) struct Arguments {}
impl Arguments {
    /// x
    pub(crate) fn run(&self, _c: &Context, _o: &mut Output) -> Result<(), Failure> {
        Ok(())
    }
}
