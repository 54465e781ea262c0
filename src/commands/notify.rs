use std::time::Duration;

use clap::{ArgGroup, Args};
use handoff::protocol::Need;

use crate::args::duration;
use crate::args::remote::PollArgs;
use crate::context::Context;
use crate::environment;
use crate::failure::Failure;
use crate::output::Output;
use handoff_http::webhook::Webhook;
use handoff_notify::{Channel, Form, Plan};

/// Tell a person what needs somebody, once, and again when it changed or is settled
///
/// Follows what needs attention, as `git handoff status` shows it. A notice is `opened` when something
/// needs the person, `updated` when the reason changed, and `settled` when it does not any more.
/// Nothing is sent twice, but for a kill during a delivery: then it comes again with the same
/// `delivery`. What could not be delivered is tried again as long as it holds.
///
/// By default, persons are told what the protocol's `attention` says. Texts of contracts are shortened,
/// and nothing in a notice looks like a secret.
#[derive(Args)]
#[command(
    group(ArgGroup::new("channel").required(true).args(["exec", "webhook", "desktop"])),
    after_help = "Examples:
  git handoff notify --exec ./tell.sh
  git handoff notify --exec 'mail -s handoff team@example.com' --once
  git handoff notify --webhook https://hooks.example/T0/B0 --format slack
  git handoff notify --webhook            (to GIT_HANDOFF_WEBHOOK)
  git handoff notify --desktop --for orchestrator --need blocked,dead --after 5m

A command gets the notice as JSON on standard input, and GIT_HANDOFF_NOTICE (opened, updated,
settled), GIT_HANDOFF_ISSUE, GIT_HANDOFF_ID and GIT_HANDOFF_TEXT. There is no shell in between."
)]
pub(crate) struct Arguments {
    /// Run this command for each notice
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,
    /// Post each notice to this address; by default the one in GIT_HANDOFF_WEBHOOK
    #[arg(long, value_name = "URL", num_args = 0..=1)]
    webhook: Option<Option<String>>,
    /// Show each notice on the desktop of this machine
    #[arg(long)]
    desktop: bool,
    /// What is posted
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["exec", "desktop"])]
    #[arg(default_value = "json")]
    format: Form,
    /// Whom to tell: what an agent is told of is told here
    #[arg(long = "for", value_name = "AGENT,…", value_delimiter = ',')]
    agents: Vec<String>,
    /// Only these needs, such as blocked, dead, failed, unclaimed
    #[arg(long = "need", value_name = "NEED,…", value_delimiter = ',', value_parser = need)]
    needs: Vec<Need>,
    /// How long something must need somebody before it is told [default: not at all]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    after: Option<Duration>,
    /// Tell what is to be told now, and end
    #[arg(long, visible_alias = "no-follow")]
    once: bool,
    #[command(flatten)]
    looks: PollArgs,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let plan = Plan {
            channel: self.channel()?,
            agents: context.all_named(&repository, &self.agents)?,
            needs: self.needs.clone(),
            after: self.after.unwrap_or_default(),
            once: self.once,
            looks: self.looks,
        };
        handoff_notify::run(&plan, context, output)
    }

    fn channel(&self) -> Result<Channel, Failure> {
        if let Some(line) = &self.exec {
            return Channel::command(line);
        }
        let Some(url) = &self.webhook else {
            return Channel::desktop();
        };
        let url = url.clone().or_else(environment::webhook);
        let Some(url) = url else {
            return Err(Failure::usage("no web address is named")
                .hint("name it after --webhook, or in GIT_HANDOFF_WEBHOOK"));
        };
        let webhook = Webhook::at(&url)?;
        let form = self.format;
        Ok(Channel::Webhook { webhook, form })
    }
}

fn need(text: &str) -> Result<Need, String> {
    let found = Need::ALL.into_iter().find(|need| need.as_str() == text);
    found.ok_or_else(|| {
        let known = Need::ALL.map(Need::as_str);
        format!("needs are: {}", known.join(", "))
    })
}
