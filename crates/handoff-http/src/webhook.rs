//! A client that posts JSON to a webhook.

use std::io::Read;
use std::time::Duration;

use handoff::base::text::cut;
use serde_json::Value;
use ureq::Agent;
use ureq::http::Uri;

use super::{address, agent, shown};
use handoff_cli::failure::{Failure, chain};

/// The time limit of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// The maximum size of a response that is read, in bytes.
const LONGEST: u64 = 4096;
/// The maximum length of a response's text that is shown, in characters.
const SHOWN: usize = 200;

/// A webhook's URL and HTTP client.
pub struct Webhook {
    agent: Agent,
    address: Uri,
}

/// Why a document was not delivered.
#[derive(Debug)]
pub enum WebhookError {
    /// The webhook refused this document.
    Refused(String),
    /// The webhook is unavailable now.
    Unreachable(String),
    /// The response timed out or was unintelligible: the document may have been delivered.
    Unheard(String),
}

impl Webhook {
    /// Parses a URL, which may be a secret: messages show only its host.
    pub fn at(url: &str) -> Result<Self, Failure> {
        let example = "write it as https://hooks.example/services/…";
        let headers = "put no password into it: a webhook's address is its own secret";
        let address = address("webhook", url, (example, headers), cfg!(feature = "https"))?;
        Ok(Self {
            agent: agent(Some(PATIENCE))?,
            address,
        })
    }

    /// The full URL.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The host alone: the rest may be secret.
    pub fn shown(&self) -> String {
        shown(&self.address, "/…")
    }

    /// Posts a document. A retry has the same `id`.
    pub fn post(&self, document: &Value, id: &str) -> Result<(), WebhookError> {
        let request = self.agent.post(&self.address);
        let request = request
            .header("content-type", "application/json")
            .header("idempotency-key", id);
        let mut response = match request.send(document.to_string()) {
            Ok(response) => response,
            Err(ureq::Error::Timeout(_)) => {
                let text = format!("it did not answer within {} s", PATIENCE.as_secs());
                return Err(WebhookError::Unheard(text));
            }
            Err(error) => {
                let why = cut(&chain(&error), SHOWN);
                return Err(if may_have_arrived(&error) {
                    WebhookError::Unheard(format!("it did not answer: {why}"))
                } else {
                    WebhookError::Unreachable(format!("it can't be reached: {why}"))
                });
            }
        };
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let mut body = Vec::new();
        // If the body can't be read, the error just has no reason.
        let _ = response
            .body_mut()
            .as_reader()
            .take(LONGEST)
            .read_to_end(&mut body);
        let body = String::from_utf8_lossy(&body);
        let said = body.trim().lines().next().unwrap_or_default();
        // Some responses repeat the URL.
        let mut parts = self.address.path().split('/').chain(self.address.query());
        let is_told = parts.any(|part| part.len() > 3 && said.contains(part));
        let said = match said {
            page if page.is_empty() || page.starts_with('<') || is_told => String::new(),
            said => format!(": {}", cut(said, SHOWN)),
        };
        Err(match status.as_u16() {
            300..=399 => WebhookError::Unreachable(format!(
                "it answers {status}, and redirections are not followed: give the address that it leads to"
            )),
            code @ (408 | 429 | 500..) => {
                WebhookError::Unreachable(format!("it answers {code}{said}"))
            }
            code => WebhookError::Refused(format!("it answers {code}{said}")),
        })
    }
}

/// Whether a request may have arrived although it failed: the connection was made, and then lost.
fn may_have_arrived(error: &ureq::Error) -> bool {
    use std::io::ErrorKind;
    match error {
        ureq::Error::Io(error) => !matches!(
            error.kind(),
            ErrorKind::ConnectionRefused
                | ErrorKind::HostUnreachable
                | ErrorKind::NetworkUnreachable
                | ErrorKind::AddrNotAvailable
        ),
        ureq::Error::Protocol(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use serde_json::json;

    use super::{Webhook, WebhookError};

    #[test]
    fn one_that_hangs_is_left_in_time() {
        // It accepts connections, but never responds.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}/a", listener.local_addr().expect("it has one"));
        let Ok(webhook) = Webhook::at(&url) else {
            panic!("it is an address");
        };
        assert!(matches!(
            webhook.post(&json!({}), "1"),
            Err(WebhookError::Unheard(why)) if why == "it did not answer within 10 s"
        ));
    }
}
