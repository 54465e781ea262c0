//! What a strict parse refuses, and the places it reports.

use crate::{MAX_BYTES, Source};

fn codes(bytes: &[u8]) -> Vec<String> {
    match Source::parse(bytes) {
        Ok(_) => Vec::new(),
        Err(findings) => findings
            .into_iter()
            .map(|finding| {
                assert!(!finding.message.ends_with('.'), "{finding:?}");
                finding.code.to_string()
            })
            .collect(),
    }
}

#[test]
fn xml_holes_are_closed() {
    let refused: &[(&str, &str)] = &[
        ("<a/><b/>", "xml.syntax"),
        ("<a>", "xml.syntax"),
        ("<a><b></a>", "xml.syntax"),
        ("<a></b>", "xml.syntax"),
        ("</a>", "xml.syntax"),
        ("<a", "xml.syntax"),
        ("<", "xml.syntax"),
        ("<a/>text", "xml.syntax"),
        ("<a/>&amp;", "xml.syntax"),
        ("<!-- only -->", "xml.syntax"),
        ("<p:a/>", "xml.namespace"),
        ("<a p:b='1'/>", "xml.namespace"),
        ("<a xmlns='urn:x'/>", "xml.namespace"),
        ("<a xmlns:p='urn:x'><p:b/></a>", "xml.namespace"),
        ("<a xml:lang='en'/>", "xml.namespace"),
        ("<a>\u{1}</a>", "xml.syntax"),
        ("<a b='\u{1}'/>", "xml.syntax"),
        ("<!--\u{1}--><a/>", "xml.syntax"),
        ("<a>\u{ffff}</a>", "xml.syntax"),
        ("<a>\0</a>", "xml.syntax"),
        ("<a>&#0;</a>", "xml.syntax"),
        ("<a>&#1;</a>", "xml.syntax"),
        ("<a>&#xFFFF;</a>", "xml.syntax"),
        ("<a>&#xD800;</a>", "xml.syntax"),
        ("<a>&#x110000;</a>", "xml.syntax"),
        ("<a>&#99999999999;</a>", "xml.syntax"),
        ("<a>&#;</a>", "xml.syntax"),
        ("<a>&#x;</a>", "xml.syntax"),
        ("<a b='&#0;'/>", "xml.syntax"),
        ("<a>&nbsp;</a>", "xml.syntax"),
        ("<a>&</a>", "xml.syntax"),
        ("<a>a & b</a>", "xml.syntax"),
        ("<a>&amp</a>", "xml.syntax"),
        ("<a b='&lt'/>", "xml.syntax"),
        ("<a b='<'/>", "xml.syntax"),
        ("<a>]]></a>", "xml.syntax"),
        ("<a><![CDATA[x</a>", "xml.syntax"),
        ("<a><![cdata[x]]></a>", "xml.syntax"),
        ("<![CDATA[x]]><a/>", "xml.syntax"),
        ("<a/><![CDATA[x]]>", "xml.syntax"),
        ("<a b='1' b='2'/>", "xml.syntax"),
        ("<a b/>", "xml.syntax"),
        ("<a b=1/>", "xml.syntax"),
        ("<a b='1'c='2'/>", "xml.syntax"),
        ("<1a/>", "xml.syntax"),
        ("<-a/>", "xml.syntax"),
        ("< a/>", "xml.syntax"),
        ("<a:/>", "xml.syntax"),
        ("<a 1b='x'/>", "xml.syntax"),
        ("<a!/>", "xml.syntax"),
        ("<a><!-- x -- y --></a>", "xml.syntax"),
        ("<a><!-- x ---></a>", "xml.syntax"),
        ("<a><!-- x </a>", "xml.syntax"),
        ("<a><?x </a>", "xml.syntax"),
        ("<a><??></a>", "xml.syntax"),
        ("<a><?xml version='1.0'?></a>", "xml.syntax"),
        ("<a><?XML x?></a>", "xml.syntax"),
        (" <?xml version='1.0'?><a/>", "xml.syntax"),
        (
            "<?xml version='1.0'?><?xml version='1.0'?><a/>",
            "xml.syntax",
        ),
        ("<?xml?><a/>", "xml.syntax"),
        ("<?xml encoding='UTF-8'?><a/>", "xml.syntax"),
        ("<?xml version='1.0' version='1.0'?><a/>", "xml.syntax"),
        ("<?xml version='1.0'encoding='UTF-8'?><a/>", "xml.syntax"),
        ("<?xml version='1.0' standalone='maybe'?><a/>", "xml.syntax"),
        ("<?xml version='1.1'?><a/>", "xml.version"),
        (
            "<?xml version='1.0' encoding='latin1'?><a/>",
            "xml.encoding",
        ),
        ("<!DOCTYPE a><a/>", "xml.doctype"),
        ("<!doctype a><a/>", "xml.doctype"),
        ("<!DOCTYPE a []><a/>", "xml.doctype"),
        (
            "<!DOCTYPE a [<!ENTITY x 'y'><!ENTITY z '&x;&x;'>]><a>&z;</a>",
            "xml.doctype",
        ),
        (
            "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>",
            "xml.doctype",
        ),
        ("<a><!DOCTYPE a></a>", "xml.doctype"),
        ("<!ELEMENT a ANY><a/>", "xml.syntax"),
        ("<a></a >>", "xml.syntax"),
        ("<a></ a>", "xml.syntax"),
        ("<a / >", "xml.syntax"),
    ];
    let wrong: Vec<_> = refused
        .iter()
        .map(|(text, code)| (text, code, codes(text.as_bytes())))
        .filter(|(_, code, seen)| seen != &[**code])
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn good_documents_are_taken() {
    let good = [
        "<a/>",
        " \n<a/>\n <!-- end --> ",
        "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\" standalone='yes'?>\n<a b='>'/>",
        "<?xml version = '1.0'?><?style x?><a/><?end?>",
        "<a xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:noNamespaceSchemaLocation='a.xsd'/>",
        "<a b=\"'>\" c='\">'><!-- <b> - - --><![CDATA[<b>]]]]>&#x10FFFF;&#10;</a>",
        "<é·.-/>",
        "{}",
        " {\"a\": [1, -2.5e3, \"\\u00e9\\n\", null, true]}\n",
    ];
    for text in good {
        assert_eq!(codes(text.as_bytes()), [""; 0], "{text:?}");
    }
}

#[test]
fn inputs_that_are_no_text_are_refused() {
    assert_eq!(codes(b""), ["input.empty"]);
    assert_eq!(codes(b" \r\n\t"), ["input.empty"]);
    assert_eq!(codes(b"\xef\xbb\xbf"), ["input.empty"]);
    assert_eq!(
        codes("\u{feff}\u{feff}<a/>".as_bytes()),
        ["input.unknown_format"]
    );
    assert_eq!(codes(b"from: x"), ["input.unknown_format"]);
    assert_eq!(codes(b"\xff\xfe<\0a\0"), ["input.not_utf8"]);
    assert_eq!(codes(b"<a>\xed\xa0\x80</a>"), ["input.not_utf8"]);
    let findings = Source::parse(
        "<a>\n<é/>"
            .as_bytes()
            .iter()
            .chain(b"\xff")
            .copied()
            .collect::<Vec<_>>()
            .as_slice(),
    )
    .unwrap_err();
    assert_eq!((findings[0].line, findings[0].column), (Some(2), Some(5)));
    assert_eq!(codes(&vec![b'<'; 50 << 20]), ["input.too_large"]);
    assert_eq!(codes(&vec![b'<'; MAX_BYTES]), ["xml.syntax"]);
}

#[test]
fn depth_is_bounded_before_a_tree_is_built() {
    let nested = |levels: usize| "<a>".repeat(levels) + &"</a>".repeat(levels);
    assert_eq!(codes(nested(64).as_bytes()), [""; 0]);
    assert_eq!(codes(nested(65).as_bytes()), ["xml.too_deep"]);
    assert_eq!(codes(nested(100_000).as_bytes()), ["xml.too_deep"]);
    let hidden = "<a b='/>'>".repeat(100_000);
    assert_eq!(codes(hidden.as_bytes()), ["xml.too_deep"]);
    let arrays = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(codes(arrays(63).as_bytes()), [""; 0]);
    assert_eq!(codes(arrays(64).as_bytes()), ["json.too_deep"]);
    assert_eq!(codes("[".repeat(100_000).as_bytes()), ["json.too_deep"]);
    assert_eq!(
        codes("{\"a\":".repeat(100_000).as_bytes()),
        ["json.too_deep"]
    );
    let many: String = (0..60_000).map(|i| format!(" a{i}=''")).collect();
    assert_eq!(
        codes(format!("<a{many}/>").as_bytes()),
        ["xml.too_many_attributes"]
    );
}

#[test]
fn json_holes_are_closed() {
    let refused: &[(&str, &[&str])] = &[
        ("{\"a\":1,\"a\":2}", &["json.duplicate_key"]),
        (
            "{\"a\":{\"b\":1,\"\\u0062\":2},\"a\":2}",
            &["json.duplicate_key", "json.duplicate_key"],
        ),
        ("{\"a\":\"\\u0001\"}", &["text.control_character"]),
        ("{\"\\u0000\":1}", &["text.control_character"]),
        ("{\"a\":\"\\uffff\"}", &["text.control_character"]),
        ("{\"a\":18446744073709551616}", &["json.number_range"]),
        ("{\"a\":-9223372036854775809}", &["json.number_range"]),
        ("{\"a\":1e999}", &["json.number_range"]),
        ("[]", &["json.not_an_object"]),
        ("\"x\"", &["json.not_an_object"]),
        ("{} {}", &["json.syntax"]),
        ("{}x", &["json.syntax"]),
        ("{", &["json.syntax"]),
        ("{\"a\":1,}", &["json.syntax"]),
        ("{'a':1}", &["json.syntax"]),
        ("{\"a\":01}", &["json.syntax"]),
        ("{\"a\":NaN}", &["json.syntax"]),
        ("{\"a\":\"\n\"}", &["json.syntax"]),
        ("{\"a\":\"\\ud800\"}", &["json.syntax"]),
        ("{/**/}", &["json.syntax"]),
        ("\u{feff}{}", &[]),
        ("{\"a", &["json.syntax"]),
        ("{\"a\\", &["json.syntax"]),
    ];
    for (text, expected) in refused {
        assert_eq!(codes(text.as_bytes()), *expected, "{text:?}");
    }
}

#[test]
fn json_faults_have_their_place() {
    let text = "{\n \"ä\": 1, \"x\": {\"b/c\": [\n  0, \"\\u0002\"]},\n \"ä\": 2}";
    let findings = Source::parse(text.as_bytes()).unwrap_err();
    let seen: Vec<_> = findings
        .iter()
        .map(|f| (f.path.as_str(), f.line.unwrap(), f.column.unwrap()))
        .collect();
    assert_eq!(seen, [("/x/b~1c/1", 3, 6), ("/ä", 4, 2)]);
    assert_eq!(findings[1].message, "the key `ä` is given twice");
}

#[test]
fn root_and_probe_need_no_schema() {
    let xml = Source::parse(b"<h><s id='7'><n> x </n></s><n>2</n></h>").unwrap();
    assert_eq!(xml.root(&[]).as_deref(), Some("h"));
    assert_eq!(xml.probe(None, "/s/n").as_deref(), Some(" x "));
    assert_eq!(xml.probe(None, "/s/id").as_deref(), Some("7"));
    assert_eq!(xml.probe(None, "/n").as_deref(), Some("2"));
    assert_eq!(xml.probe(None, "/s"), None);
    assert_eq!(xml.probe(None, "/s/n/z"), None);
    let json = Source::parse(b"{\"h\":{\"s\":{\"id\":7},\"ok\":true}}").unwrap();
    assert_eq!(json.root(&["g", "h"]).as_deref(), Some("h"));
    assert_eq!(json.root(&["g"]), None);
    assert_eq!(json.probe(Some("h"), "/s/id").as_deref(), Some("7"));
    assert_eq!(json.probe(Some("h"), "/ok").as_deref(), Some("true"));
    assert_eq!(json.probe(None, "/h/s"), None);
}
