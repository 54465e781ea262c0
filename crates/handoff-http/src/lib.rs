//! HTTP: the `server` shows a page on this machine; `collector`, `webhook` and `github` are clients
//! of trace collectors, notice endpoints and GitHub's API.
//!
//! This crate knows HTTP, but nothing about ledgers.

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

/// Parses a URL. `what` it belongs to, an `example`, and where `secrets` belong are for error
/// messages, which never repeat the URL: it may contain a secret.
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
    let uri: Uri = url.trim().parse().map_err(|_| wrong("is not a URL"))?;
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

/// A client that follows no redirects: URL, headers and token may be secrets that another host must
/// not learn.
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

/// A URL for display: its scheme and host, with `rest` in place of the path.
fn shown(address: &Uri, rest: &str) -> String {
    let scheme = address.scheme_str().unwrap_or_default();
    let authority = address.authority().map_or("", |a| a.as_str());
    plain(&format!("{scheme}://{authority}{rest}"))
}
