//! A server in a TOML configuration: a marked block at the end of the file, where a table is always
//! valid. Everything else stays.

use serde_json::Value;

use super::guide;
use handoff_cli::hooks::{BlockFault, find_between};

const MARKS: [&str; 2] = ["# >>> git-handoff >>>", "# <<< git-handoff <<<"];

/// Why a configuration can't be edited.
#[derive(Debug, thiserror::Error)]
pub(super) enum TableFault {
    #[error("the block has no clear boundaries: {0}")]
    Block(#[from] BlockFault),
    #[error("it is not TOML: {0}")]
    Syntax(String),
    #[error("`{0}` in it is not what a table can be added to")]
    Shape(String),
    #[error("it has a server of this name that was not written by this program")]
    Foreign,
}

/// A server's table.
pub(super) struct Table<'a> {
    /// The keys that lead to the servers.
    pub(super) at: &'a [String],
    /// The server's name.
    pub(super) name: &'a str,
}

impl Table<'_> {
    /// The table of a server.
    pub(super) fn text(&self, server: &Value) -> String {
        let members = server.as_object().into_iter().flatten();
        // Strings and lists of strings are the same in JSON and TOML.
        let lines = members.map(|(key, value)| format!("{key} = {value}\n"));
        let lines: String = lines.collect();
        format!("[{}.{}]\n{lines}", self.at.join("."), self.name)
    }

    /// A configuration with this server added, or ours replaced.
    pub(super) fn with(
        &self,
        bytes: Option<&[u8]>,
        server: &Value,
        is_ours: impl Fn(&Value) -> bool,
    ) -> Result<Option<Vec<u8>>, TableFault> {
        let old = bytes.unwrap_or_default();
        match self.server(&self.outside(old)?)? {
            Some(own) if own == *server => return Ok(bytes.map(<[u8]>::to_vec)),
            Some(_) => return Err(TableFault::Foreign),
            None => {}
        }
        if self.server(old)?.is_some_and(|own| !is_ours(&own)) {
            return Err(TableFault::Foreign);
        }
        let [begin, end] = MARKS;
        let block = format!("{begin}\n{}{end}\n", self.text(server));
        let new = guide::put(bytes, MARKS, Some(&block))?;
        match self.server(new.as_deref().unwrap_or_default()) {
            Ok(Some(own)) if own == *server => Ok(new),
            _ => Err(TableFault::Shape(self.at.join("."))),
        }
    }

    /// A configuration without our server; `None` if nothing else was in it.
    pub(super) fn without(
        &self,
        bytes: Option<&[u8]>,
        is_ours: impl Fn(&Value) -> bool,
    ) -> Result<Option<Vec<u8>>, TableFault> {
        let old = bytes.unwrap_or_default();
        let is_marked = find_between(old, MARKS)?.is_some();
        if is_marked && self.server(old)?.is_some_and(|own| is_ours(&own)) {
            return Ok(guide::put(bytes, MARKS, None)?);
        }
        Ok(bytes.map(<[u8]>::to_vec))
    }

    /// A configuration without the block.
    fn outside(&self, bytes: &[u8]) -> Result<Vec<u8>, TableFault> {
        let block = find_between(bytes, MARKS)?.map_or(0..0, |block| block.bytes);
        Ok([&bytes[..block.start], &bytes[block.end..]].concat())
    }

    /// The server of this name in a configuration.
    fn server(&self, bytes: &[u8]) -> Result<Option<Value>, TableFault> {
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|_| TableFault::Syntax("it is not UTF-8".to_owned()))?;
        let config: Value =
            toml::from_str(text).map_err(|fault| TableFault::Syntax(fault.message().to_owned()))?;
        let servers = self
            .at
            .iter()
            .try_fold(&config, |value, key| value.get(key));
        Ok(servers.and_then(|servers| servers.get(self.name)).cloned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Table, TableFault};

    fn ours(agent: Option<&str>) -> Value {
        let agent = agent.map(|agent| ["--as", agent]);
        let agent = agent.into_iter().flatten();
        let arguments: Vec<&str> = ["mcp"].into_iter().chain(agent).collect();
        json!({ "command": "git-handoff", "args": arguments })
    }

    fn is_ours(server: &Value) -> bool {
        server["command"] == "git-handoff" && server.as_object().is_some_and(|all| all.len() == 2)
    }

    #[test]
    fn what_is_taken_out_leaves_every_byte_as_it_was() {
        let at = ["mcp_servers".to_owned()];
        let table = Table {
            at: &at,
            name: "git-handoff",
        };
        for text in [
            None,
            Some(""),
            Some("model = \"x\" # mine"),
            Some("[mcp_servers.other]\r\ncommand = 'a'\r\n"),
            Some("# only a remark\n\n"),
        ] {
            let bytes = text.map(str::as_bytes);
            let with = table.with(bytes, &ours(None), is_ours).ok().flatten();
            let read = table.server(with.as_deref().unwrap_or_default());
            assert_eq!(read.ok().flatten(), Some(ours(None)), "{text:?}");
            let again = table.with(with.as_deref(), &ours(None), is_ours);
            assert_eq!(again.ok().flatten(), with);
            let other = ours(Some("an \\ \"agent\""));
            let named = table.with(with.as_deref(), &other, is_ours).ok().flatten();
            let read = table.server(named.as_deref().unwrap_or_default());
            assert_eq!(read.ok().flatten(), Some(other));
            let without = table.without(named.as_deref(), is_ours).ok();
            assert_eq!(without, Some(bytes.map(<[u8]>::to_vec)), "{text:?}");
        }
    }

    #[test]
    fn what_the_user_wrote_is_left_or_named() {
        let at = ["mcp_servers".to_owned()];
        let table = Table {
            at: &at,
            name: "git-handoff",
        };
        let with = |text: &str| table.with(Some(text.as_bytes()), &ours(None), is_ours);
        let own = "[mcp_servers.git-handoff]\nargs = [\"mcp\"]\ncommand = \"git-handoff\"\n";
        assert_eq!(with(own).ok().flatten().as_deref(), Some(own.as_bytes()));
        let left = table.without(Some(own.as_bytes()), is_ours).ok().flatten();
        assert_eq!(left.as_deref(), Some(own.as_bytes()));
        for text in [
            "[mcp_servers.git-handoff]\ncommand = 'other'\n",
            "# >>> git-handoff >>>\n[mcp_servers.git-handoff]\ncommand = 'git-handoff'\nargs = []\nenv = { A = 'b' }\n# <<< git-handoff <<<\n",
        ] {
            assert!(matches!(with(text), Err(TableFault::Foreign)), "{text}");
            let left = table.without(Some(text.as_bytes()), is_ours).ok().flatten();
            assert_eq!(left.as_deref(), Some(text.as_bytes()), "{text}");
        }
        for text in ["mcp_servers = {}\n", "mcp_servers = 1\n"] {
            assert!(matches!(with(text), Err(TableFault::Shape(_))), "{text}");
        }
        assert!(matches!(with("a = \n"), Err(TableFault::Syntax(_))));
        let unclosed = with("# >>> git-handoff >>>\n");
        assert!(matches!(unclosed, Err(TableFault::Block(_))));
    }
}
