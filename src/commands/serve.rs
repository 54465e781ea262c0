use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use clap::Args;
use handoff::git::Repository;
use handoff::model::{Refusal, View};
use handoff_report::report::{Frame, gone, policy};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::report::{WantedArguments, name, write};
use crate::context::Context;
use crate::context::interruption::Interruption;
use crate::failure::{ErrorCode, Failure, chain};
use crate::output::{self, Output};
use crate::view::Look;
use handoff_http::server::{Answer, Body, Request, Server};

/// Serve a live page about the ledger to a browser
///
/// The page of `git handoff report`, served to this machine only. It checks every two
/// seconds whether the ledger has changed, and if so refreshes, keeping your position
/// and filters. Runs until it is interrupted, and then exits 0; through `git handoff`,
/// git itself exits with the signal's code (130, 143).
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff serve
  git handoff serve --port 8123 --since 30d")]
pub(crate) struct Arguments {
    /// The port; by default any free port
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    #[command(flatten)]
    wanted: WantedArguments,
}

/// A request from a web server's thread to the ledger's reader.
enum PageRequest {
    Page(Sender<Answer>),
    /// The ledger's newest commit.
    Tip(Sender<Answer>),
    /// No answer: wakes the reader, so that it checks whether to end.
    Nothing,
}

/// A rendered page.
struct Page {
    tip: String,
    file: Arc<File>,
    length: u64,
    made: Instant,
}

/// How long a page is reused while the ledger does not change: a handoff can become overdue without
/// a step.
const FRESH: Duration = Duration::from_secs(300);

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let frame = {
            let repository = Repository::open_here()?;
            let tip = context.tip(&repository)?;
            for key in self.wanted.named() {
                if tip.issue(key)?.issue()?.is_none() {
                    return Err(Refusal::no_issue(key).into());
                }
            }
            Frame {
                name: name(&repository),
                live: true,
            }
        };
        let server = Server::bind(self.port).map_err(|error| {
            let text = format!(
                "cannot listen on port {} of this machine: {error}",
                self.port
            );
            Failure::new(ErrorCode::Port, text).hint("omit --port to use any free port")
        })?;
        let (ask, requests) = mpsc::channel();
        let interruption = Interruption::catch({
            let ask = Mutex::new(ask.clone());
            move || {
                if let Ok(ask) = ask.lock() {
                    let _ = ask.send(PageRequest::Nothing);
                }
            }
        });
        let interruption = interruption.map_err(|error| {
            let text = format!("signals cannot be caught: {error}");
            Failure::new(ErrorCode::Signals, text)
        })?;
        let port = server.port();
        let address = format!("http://127.0.0.1:{port}/");
        server.start(move |request| answer(request, &ask));
        output.answer(&ServeView { address, port })?;
        let mut reader = Reader {
            context,
            wanted: &self.wanted,
            frame: &frame,
            page: None,
        };
        for request in requests {
            if interruption.requested().load(Ordering::SeqCst) {
                break;
            }
            // A client that has disconnected needs no answer.
            let _ = match request {
                PageRequest::Page(to) => to.send(reader.page()),
                PageRequest::Tip(to) => to.send(reader.tip_answer()),
                PageRequest::Nothing => Ok(()),
            };
        }
        Ok(())
    }
}

/// The address of the page.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Serve")]
pub(crate) struct ServeView {
    /// where the page is
    address: String,
    /// the port
    port: u16,
}

impl output::Answer for ServeView {
    fn text(&self, _: &Look) -> String {
        format!("{}\n", self.address)
    }
}

/// Answers a request, on one of the server's threads.
fn answer(request: &Request, ask: &Sender<PageRequest>) -> Answer {
    let (to, from) = mpsc::channel();
    let page_request = match request.path.as_str() {
        "/" => PageRequest::Page(to),
        "/tip" => PageRequest::Tip(to),
        _ => return Answer::text("404 Not Found", "only / is served here"),
    };
    let ends = || Answer::text("503 Service Unavailable", "the server is shutting down");
    if ask.send(page_request).is_err() {
        return ends();
    }
    from.recv().unwrap_or_else(|_| ends())
}

/// Reads the ledger on one thread, to which its handles belong.
struct Reader<'a> {
    context: &'a Context,
    wanted: &'a WantedArguments,
    frame: &'a Frame,
    page: Option<Page>,
}

impl Reader<'_> {
    /// The ledger's newest commit.
    fn tip(&self) -> Result<String, Failure> {
        let repository = Repository::open_here()?;
        let tip = self.context.ledger(&repository)?.tip()?;
        Ok(tip.commit().to_string())
    }

    fn tip_answer(&self) -> Answer {
        let document = json!({ "tip": self.tip().unwrap_or_default() });
        Answer {
            status: "200 OK",
            kind: "application/json",
            headers: String::new(),
            body: Body::Text(document.to_string()),
        }
    }

    /// The page for the current ledger, cached while nothing changes.
    fn page(&mut self) -> Answer {
        let current = match self.tip() {
            Ok(tip) => match &self.page {
                Some(page) if page.tip == tip && page.made.elapsed() < FRESH => Ok(()),
                _ => self.made().map(|page| self.page = Some(page)),
            },
            Err(failure) => Err(failure),
        };
        let (status, body) = match (current, &self.page) {
            (Ok(()), Some(page)) => ("200 OK", Body::File(Arc::clone(&page.file), page.length)),
            (Ok(()), None) => ("200 OK", Body::Text(String::new())),
            (Err(failure), _) => {
                let text = gone(self.frame, &failure.message);
                ("503 Service Unavailable", Body::Text(text))
            }
        };
        let policy = policy(true);
        Answer {
            status,
            kind: "text/html; charset=utf-8",
            headers: format!("Content-Security-Policy: {policy}; frame-ancestors 'none'\r\n"),
            body,
        }
    }

    /// Renders the page to an unnamed file, which is deleted when the program ends.
    fn made(&self) -> Result<Page, Failure> {
        let failed = |error: std::io::Error| {
            let text = format!("the page cannot be written: {}", chain(&error));
            Failure::new(ErrorCode::Output, text)
        };
        let repository = Repository::open_here()?;
        let ledger = self.context.ledger(&repository)?;
        let tip = ledger.tip()?;
        let file = tempfile::tempfile().map_err(failed)?;
        let mut out = BufWriter::with_capacity(1 << 18, file);
        write(&ledger, &tip, self.wanted, self.frame, &mut out)?;
        out.flush().map_err(failed)?;
        let file = out
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        Ok(Page {
            tip: tip.commit().to_string(),
            length: file.metadata().map_err(failed)?.len(),
            file: Arc::new(file),
            made: Instant::now(),
        })
    }
}
