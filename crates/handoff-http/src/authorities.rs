//! The certificate authorities that a collector's certificate is verified against.

use std::env;

use handoff::base::text::quoted;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use handoff_cli::failure::{ErrorCode, Failure, chain};

/// The TLS configuration for collectors: the authorities in the file that the environment names,
/// else those that browsers trust.
///
/// # Errors
/// A [`Failure`] of the environment if that file can't be used.
pub(super) fn tls() -> Result<TlsConfig, Failure> {
    Ok(TlsConfig::builder().root_certs(roots()?).build())
}

fn roots() -> Result<RootCerts, Failure> {
    let names = [
        "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
        "OTEL_EXPORTER_OTLP_CERTIFICATE",
    ];
    let mut set = names
        .iter()
        .filter_map(|name| env::var_os(name).filter(|path| !path.is_empty()));
    let Some(path) = set.next() else {
        return Ok(RootCerts::WebPki);
    };
    let shown = quoted(&path.to_string_lossy());
    let wrong = |why: String| {
        let text = format!("the certificates in {shown} cannot be used: {why}");
        Failure::new(ErrorCode::CollectorUnreachable, text)
            .hint("name a PEM file in OTEL_EXPORTER_OTLP_CERTIFICATE")
    };
    let bytes = std::fs::read(&path).map_err(|error| wrong(error.to_string()))?;
    let mut found: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&bytes) {
        if let PemItem::Certificate(certificate) = item.map_err(|e| wrong(chain(&e)))? {
            found.push(certificate);
        }
    }
    match found.is_empty() {
        true => Err(wrong("it holds none".to_owned())),
        false => Ok(RootCerts::new_with_certs(&found)),
    }
}
