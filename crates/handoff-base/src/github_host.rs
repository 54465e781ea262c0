//! GitHub's hosts, as `gh` tells them apart: github.com and its parts, `*.ghe.com`, and GitHub Enterprise Servers.

/// Whether a host is GitHub's own, and no GitHub Enterprise Server.
pub fn is_cloud(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let is = |cloud: &str| host == cloud || host.ends_with(&format!(".{cloud}"));
    is("github.com") || is("ghe.com")
}

/// The host in the URL of a remote, as `gh` calls it: `github.com` for `git@ssh.github.com:octo/desk`; `None`
/// for a name without a dot, such as a folder or an ssh alias.
pub fn host_of(url: &str) -> Option<String> {
    let place = url.split_once("://").map_or(url, |(_, place)| place);
    let authority = place.split('/').next()?.rsplit('@').next()?;
    let host = authority.split(':').next()?.to_ascii_lowercase();
    if !host.trim_start_matches('.').contains('.') {
        return None;
    }
    let kept = if host.ends_with(".github.com") {
        2
    } else if host.ends_with(".ghe.com") {
        3
    } else {
        return Some(host);
    };
    let labels: Vec<&str> = host.rsplit('.').take(kept).collect();
    Some(labels.into_iter().rev().collect::<Vec<_>>().join("."))
}

/// The address of a host's API.
pub fn api_of(host: &str) -> String {
    if is_cloud(host) {
        format!("https://api.{host}")
    } else {
        format!("https://{host}/api/v3")
    }
}

#[cfg(test)]
mod tests {
    use super::{api_of, host_of, is_cloud};

    #[test]
    fn a_host_is_known_by_its_remote_and_has_its_own_api() {
        for (url, host, api) in [
            (
                "https://github.com/octo/desk",
                "github.com",
                "https://api.github.com",
            ),
            (
                "git@ssh.github.com:octo/desk.git",
                "github.com",
                "https://api.github.com",
            ),
            (
                "ssh://git@ssh.github.com:443/octo/desk",
                "github.com",
                "https://api.github.com",
            ),
            (
                "https://Octo.ghe.com/octo/desk",
                "octo.ghe.com",
                "https://api.octo.ghe.com",
            ),
            (
                "https://ada@ghe.corp.example:8443/o/d",
                "ghe.corp.example",
                "https://ghe.corp.example/api/v3",
            ),
            (
                "git@notgithub.com:o/d",
                "notgithub.com",
                "https://notgithub.com/api/v3",
            ),
        ] {
            assert_eq!(host_of(url).as_deref(), Some(host), "{url}");
            assert_eq!(api_of(host), api);
            assert_eq!(is_cloud(host), api.starts_with("https://api."), "{url}");
        }
        for url in ["../owner/desk", "/srv/desk.git", "work:octo/desk", ""] {
            assert_eq!(host_of(url), None, "{url}");
        }
    }
}
