//! A client for OTLP collectors: JSON over HTTP, within one time budget.

use std::io::Read;
use std::time::{Duration, Instant};
use std::{env, io, thread};

use handoff::base::text::cut;
use serde_json::Value;
use ureq::Agent;
use ureq::http::{HeaderName, HeaderValue, StatusCode, Uri};

use super::{address, agent, shown};
use handoff_cli::failure::{ErrorCode, Failure, chain};

/// A collector's URL.
pub struct Endpoint(Uri);

/// A collector's response to spans.
#[derive(Default)]
pub struct Answer {
    /// The number of rejected spans.
    pub rejected: u64,
    /// The reason, or a warning.
    pub message: String,
}

/// A connection to a collector within a time budget.
pub struct Collector {
    agent: Agent,
    endpoint: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
    budget: Duration,
    until: Instant,
}

/// The default path of traces below a collector's URL.
const PATH: &str = "/v1/traces";
/// The maximum size of a response body that is read, in bytes.
const LONGEST: u64 = 64 * 1024;
/// The maximum length of a collector's text that is shown, in characters.
const SHOWN: usize = 200;
/// The delay before the first retry, unless the collector sets one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

impl Endpoint {
    /// The given URL, or the one that the environment names. Without a path, it is a collector's
    /// base URL.
    ///
    /// # Errors
    /// A [`Failure`] of usage if it is missing or invalid; of the environment if this program
    /// can't reach it.
    pub fn named(url: Option<&str>) -> Result<Self, Failure> {
        Self::reached(url, cfg!(feature = "https"))
    }

    fn reached(url: Option<&str>, has_https: bool) -> Result<Self, Failure> {
        let set = |name: &str| env::var(name).ok().filter(|text| !text.trim().is_empty());
        let base = || {
            let base = set("OTEL_EXPORTER_OTLP_ENDPOINT")?;
            Some(format!("{}{PATH}", base.trim().trim_end_matches('/')))
        };
        let named = url
            .map(str::to_owned)
            .or_else(|| set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"))
            .or_else(base);
        let Some(named) = named else {
            return Err(Failure::usage("no collector is named")
                .hint("with --push URL, or in OTEL_EXPORTER_OTLP_ENDPOINT"));
        };
        let example = "write it as http://localhost:4318 or https://collector.example/v1/traces";
        let secrets = "put what a collector asks for into OTEL_EXPORTER_OTLP_HEADERS";
        let uri = address("collector", &named, (example, secrets), has_https)?;
        if uri.path() == "/" && uri.query().is_none() {
            let url = format!("{}{PATH}", named.trim().trim_end_matches('/'));
            // A valid path appended to a valid URL is valid.
            return Ok(Self(url.parse().unwrap_or(uri)));
        }
        Ok(Self(uri))
    }
}

impl Answer {
    /// Adds the response to further spans.
    pub fn add(&mut self, other: Self) {
        self.rejected = self.rejected.saturating_add(other.rejected);
        if !other.message.is_empty() {
            self.message = other.message;
        }
    }
}

impl Collector {
    /// Starts the time budget for all requests.
    ///
    /// # Errors
    /// A [`Failure`] if the environment's headers or certificates are invalid.
    pub fn new(endpoint: Endpoint, budget: Duration) -> Result<Self, Failure> {
        Ok(Self {
            agent: agent(None)?,
            endpoint: endpoint.0,
            headers: headers()?,
            budget,
            until: Instant::now() + budget,
        })
    }

    /// The URL, without parts that may be secret.
    pub fn shown(&self) -> String {
        shown(&self.endpoint, self.endpoint.path())
    }

    /// Sends a document; if the collector asks for it, retries within the time budget.
    ///
    /// # Errors
    /// A [`Failure`] of the environment: not reached, refused, or out of time.
    pub fn send(&mut self, document: &str) -> Result<Answer, Failure> {
        let mut pause = FIRST_PAUSE;
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.late());
            }
            let request = self.agent.post(&self.endpoint);
            let mut request = request.config().timeout_global(Some(left)).build();
            request = request.header("content-type", "application/json");
            for (name, value) in &self.headers {
                request = request.header(name, value);
            }
            let mut response = match request.send(document) {
                Ok(response) => response,
                Err(ureq::Error::Timeout(_)) => return Err(self.late()),
                Err(error) => return Err(self.unreached(&error)),
            };
            let status = response.status();
            let after = response.headers().get("retry-after");
            let after = after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
            let mut body = Vec::new();
            let reader = response.body_mut().as_reader();
            let read = reader.take(LONGEST).read_to_end(&mut body);
            if status.is_success() {
                return match read {
                    Ok(_) => self.answer(&body),
                    Err(error) if is_late(&error) => Err(self.late()),
                    Err(error) => Err(self.unreached(&error)),
                };
            }
            // The status decides, even if the body can't be read. OTLP defines these as retryable:
            if !matches!(status.as_u16(), 429 | 502 | 503 | 504) {
                return Err(self.refused(status, &body));
            }
            let wait = after.map_or(pause, Duration::from_secs);
            if wait >= self.until.saturating_duration_since(Instant::now()) {
                let failure = self.refused(status, &body);
                let text = match after {
                    Some(seconds) => format!(
                        "it asks to wait {seconds} s, and --timeout does not leave so long: try again then, or with a longer one"
                    ),
                    None => "it asks for patience: try again later, or with a longer --timeout"
                        .to_owned(),
                };
                return Err(failure.hint(format!("{text}; what was sent twice has the same ids")));
            }
            thread::sleep(wait);
            pause *= 2;
        }
    }

    /// Parses the response to an accepted document.
    fn answer(&self, body: &[u8]) -> Result<Answer, Failure> {
        if body.is_empty() {
            return Ok(Answer::default());
        }
        let Ok(Value::Object(answer)) = serde_json::from_slice::<Value>(body) else {
            let text = format!("{} does not answer as a collector does", self.shown());
            let failure = Failure::new(ErrorCode::CollectorRefused, text);
            return Err(
                failure.hint("see that the address is that of a collector's OTLP over HTTP")
            );
        };
        let partial = answer.get("partialSuccess").unwrap_or(&Value::Null);
        let rejected = &partial["rejectedSpans"];
        let rejected = rejected
            .as_u64()
            .or_else(|| rejected.as_str()?.parse().ok());
        let message = partial["errorMessage"].as_str().unwrap_or_default();
        Ok(Answer {
            rejected: rejected.unwrap_or(0),
            message: self.visible(message),
        })
    }

    /// Sanitizes a collector's text: truncated, and without header values.
    fn visible(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (_, value) in &self.headers {
            let value = value.to_str().unwrap_or_default();
            let words = value.split(' ').filter(|word| word.len() > 3);
            for secret in words {
                text = text.replace(secret, "…");
            }
        }
        cut(&text, SHOWN)
    }

    /// The collector's reason for refusing, in one line: its message, or else the body unless it is
    /// HTML.
    fn why(&self, body: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(body);
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = &answer["error"];
        let messages = [&answer["message"], &error["message"], error];
        let message = messages.into_iter().find_map(Value::as_str);
        let is_text = |c: char| !c.is_control() && c != char::REPLACEMENT_CHARACTER;
        let is_text = |text: &str| text.chars().all(|c| is_text(c) || c.is_whitespace());
        // Truncation may split a character.
        let beginning: String = text.chars().take(2 * SHOWN).collect();
        let own = Some(beginning.as_str()).filter(|own| {
            let own = own.trim_start();
            !own.starts_with('<') && is_text(own) && !matches!(own.trim_end(), "" | "{}" | "[]")
        });
        let words: Vec<&str> = message.or(own)?.split_whitespace().collect();
        Some(self.visible(&words.join(" "))).filter(|text| !text.is_empty())
    }

    fn refused(&self, status: StatusCode, body: &[u8]) -> Failure {
        let reason = self.why(body);
        let reason = reason
            .map(|reason| format!(": {reason}"))
            .unwrap_or_default();
        let text = format!("{} answers {}{reason}", self.shown(), status.as_u16());
        let hint = match status.as_u16() {
            401 | 403 => "see what the collector asks for, and OTEL_EXPORTER_OTLP_HEADERS",
            300..=399 => "redirections are not followed: give --push the address that it leads to",
            404 | 405 => "see that the address ends as the collector wants it, such as /v1/traces",
            _ => "nothing in the ledger changed; what was sent twice has the same ids",
        };
        Failure::new(ErrorCode::CollectorRefused, text).hint(hint)
    }

    fn unreached(&self, error: &dyn std::error::Error) -> Failure {
        let why = self.visible(&chain(error));
        let text = format!("{} cannot be reached: {why}", self.shown());
        Failure::new(ErrorCode::CollectorUnreachable, text)
            .hint("see that a collector runs there and takes OTLP over HTTP (usually at port 4318)")
    }

    fn late(&self) -> Failure {
        let seconds = self.budget.as_secs_f64();
        let text = format!("{} did not take it within {seconds} s", self.shown());
        Failure::new(ErrorCode::CollectorUnreachable, text)
            .hint("give it longer with --timeout; what was sent twice has the same ids")
    }
}

/// Whether a response timed out while it was read.
fn is_late(error: &io::Error) -> bool {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<ureq::Error>());
    matches!(inner, Some(ureq::Error::Timeout(_))) || error.kind() == io::ErrorKind::TimedOut
}

/// The headers set in the environment: `name=value,name=value`, values percent-encoded.
fn headers() -> Result<Vec<(HeaderName, HeaderValue)>, Failure> {
    let names = [
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
        "OTEL_EXPORTER_OTLP_HEADERS",
    ];
    let set = |name: &'static str| Some((name, env::var(name).ok().filter(|t| !t.is_empty())?));
    let Some((variable, text)) = names.into_iter().find_map(set) else {
        return Ok(Vec::new());
    };
    let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
    let read = parts.map(|part| {
        let (name, value) = part.split_once('=')?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
        let mut value = HeaderValue::from_bytes(&decoded(value.trim())?).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    });
    // It contains a secret, so it is not repeated.
    read.collect::<Option<_>>().ok_or_else(|| {
        Failure::usage(format!("{variable} holds something that is not a header"))
            .hint("write it as name=value,name=value, with values percent-encoded")
    })
}

/// Decodes percent-encoded text.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut found = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        found.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high << 4 | low).ok()?
            }
            other => other,
        });
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::{Endpoint, decoded};
    use handoff_cli::failure::ErrorCode;

    #[test]
    fn https_needs_a_build_with_it() {
        let url = Some("https://collector.example");
        assert!(Endpoint::reached(url, true).is_ok());
        let Err(failure) = Endpoint::reached(url, false) else {
            panic!("it has no https");
        };
        assert_eq!(failure.code, Some(ErrorCode::HttpsMissing));
        assert!(
            failure.next().to_string().contains("--features https"),
            "{}",
            failure.next()
        );
    }

    #[test]
    fn values_of_headers_are_percent_decoded() {
        assert_eq!(decoded("Bearer%20a%2Cb"), Some(b"Bearer a,b".to_vec()));
        assert_eq!(decoded("plain"), Some(b"plain".to_vec()));
        for text in ["%", "%2", "%zz", "a%"] {
            assert_eq!(decoded(text), None, "{text}");
        }
    }
}
