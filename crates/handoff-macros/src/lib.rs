//! Macros for types that are read and written. They look at single tokens, and parse no Rust.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Derives no JSON Schema, and accepts the real derive's attributes.
#[proc_macro_derive(JsonSchema, attributes(schemars, serde))]
pub fn json_schema(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Leaves out fields that are `None` when a struct or an enum's variant is written.
#[proc_macro_attribute]
pub fn skip_serializing_none(_: TokenStream, item: TokenStream) -> TokenStream {
    apply(
        r#"Option => #[serde(skip_serializing_if = "Option::is_none")],"#
            .parse()
            .expect("a rule is Rust"),
        item,
    )
}

/// Adds attributes to named fields by their type: `#[apply(Vec => #[serde(default)],)]`. A field
/// with the attribute `skip_apply` gets none of the first macro's, so `apply` stands above
/// `skip_serializing_none`.
#[proc_macro_attribute]
pub fn apply(rules: TokenStream, item: TokenStream) -> TokenStream {
    with_attributes(item, &rules.into_iter().collect::<Vec<_>>())
}

fn with_attributes(tokens: TokenStream, rules: &[TokenTree]) -> TokenStream {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let text = |at: usize| tokens.get(at).map(ToString::to_string).unwrap_or_default();
    let mut out: Vec<TokenTree> = Vec::new();
    // Where a field begins, after its attributes.
    let (mut start, mut is_skipped) = (0, false);
    for (at, token) in tokens.iter().enumerate() {
        // A rule is `TYPE`, `=`, `>`, `#`, `[…]` and `,`.
        let mut rules_of_six = rules.chunks(6);
        if text(at + 1) == ":"
            && !is_skipped
            && let Some(rule) = rules_of_six.find(|rule| rule[0].to_string() == text(at + 2))
        {
            out.splice(start..start, rule[3..5].iter().cloned());
        }
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let inner = with_attributes(group.stream(), rules);
                out.push(Group::new(Delimiter::Brace, inner).into());
            }
            TokenTree::Group(_) if text(at) == "[skip_apply]" => {
                out.pop();
                is_skipped = true;
            }
            other => out.push(other.clone()),
        }
        let is_attribute = at > 0 && text(at - 1) == "#";
        if is_attribute || text(at) == "," {
            (start, is_skipped) = (out.len(), is_attribute && is_skipped);
        }
    }
    out.into_iter().collect()
}
