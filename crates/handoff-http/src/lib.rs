//! HTTP: the `server` that shows a page on this machine, the `collector` that traces are sent to,
//! `webhook`, an address that notices are posted to, and `github`, its API.
//!
//! What enters here knows the protocol, and nothing of ledgers.

#[cfg(feature = "https")]
mod authorities;
pub mod collector;
pub mod github;
pub mod server;
pub mod webhook;

use std::time::Duration;

use handoff::base::text::plain;
use ureq::Agent;
use ureq::http::Uri;

use handoff_cli::failure::{ErrorCode, Failure};

/// Reads an address that something is sent to; `what` it is of, an `example`, and where `secrets`
/// belong are for the message. An address may hold a secret: no message repeats it.
///
/// # Errors
/// A [`Failure`] of usage if it is invalid; of the environment if this program can't reach it.
fn address(
    what: &str,
    url: &str,
    (example, secrets): (&str, &str),
    has_https: bool,
) -> Result<Uri, Failure> {
    let wrong = |why: &str| Failure::usage(format!("the {what}'s address {why}")).hint(example);
    let uri: Uri = url.trim().parse().map_err(|_| wrong("is no URL"))?;
    let scheme = uri.scheme_str().unwrap_or_default();
    if !["http", "https"].contains(&scheme) {
        return Err(wrong("begins with neither http:// nor https://"));
    }
    if uri.authority().is_none_or(|a| a.as_str().contains('@')) {
        return Err(wrong("holds a user's name or a password").hint(secrets));
    }
    if scheme == "https" && !has_https {
        let text = format!(
            "the {what}'s address begins with https://, and this git-handoff was built without https"
        );
        return Err(Failure::new(ErrorCode::HttpsMissing, text).hint(
            "take a released one, or build it with `cargo install --path . --features https`",
        ));
    }
    Ok(uri)
}

/// A client that follows no redirects: an address, its headers and the token may be secrets, which
/// another host must not learn.
///
/// # Errors
/// A [`Failure`] of the environment if its certificates can't be used.
fn agent(limit: Option<Duration>) -> Result<Agent, Failure> {
    let config = Agent::config_builder()
        .user_agent(concat!("git-handoff/", env!("CARGO_PKG_VERSION")))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_global(limit);
    #[cfg(feature = "https")]
    let config = config.tls_config(authorities::tls()?);
    Ok(config.build().into())
}

/// An address for people: its scheme and host, and this in place of the rest.
fn shown(address: &Uri, rest: &str) -> String {
    let scheme = address.scheme_str().unwrap_or_default();
    let authority = address.authority().map_or("", |a| a.as_str());
    plain(&format!("{scheme}://{authority}{rest}"))
}
