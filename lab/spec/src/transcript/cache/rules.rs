//! The controller's rules, as commands.

use super::super::words::number;
use super::names::Names;
use midflight_dataplane::cache::Rule;
use std::net::SocketAddr;

/// `None` if the command is no rule.
pub(super) fn parse(words: &[&str], names: &Names) -> Result<Option<Rule>, String> {
    let rule = match words {
        ["own", "rack", rack, "selector", name] => {
            Rule::Own { rack: Some(number(rack)?), selector: Some(names.anybody(name)?) }
        }
        ["own", "rack", rack] => Rule::Own { rack: Some(number(rack)?), selector: None },
        ["own", "selector", name] => Rule::Own { rack: None, selector: Some(names.anybody(name)?) },
        ["rack", rack, "gone"] => Rule::Rack { rack: number(rack)?, operator: None, marker: 0 },
        ["rack", rack, "has", operator, "marker", marker] => {
            let operator = Some(names.anybody(operator)?);
            Rule::Rack { rack: number(rack)?, operator, marker: parse_marker(marker)? }
        }
        ["host", name, "rack", rack] => Rule::Host { ip: names.anybody(name)?.ip(), rack: number(rack)?, group: None },
        ["host", name, "rack", rack, "group", group] => {
            Rule::Host { ip: names.anybody(name)?.ip(), rack: number(rack)?, group: Some(number(group)?) }
        }
        ["place", name, "rack", rack] => Rule::Server { address: names.anybody(name)?, rack: number(rack)? },
        ["place", name] => Rule::Operator(names.anybody(name)?),
        ["gone", "host", name] => Rule::Gone(SocketAddr::new(names.anybody(name)?.ip(), 0)),
        ["gone", name] => Rule::Gone(names.anybody(name)?),
        ["rsnode", id, "at", name] => Rule::RsNode { id: number(id)?, operator: Some(names.anybody(name)?) },
        ["rsnode", id, "gone"] => Rule::RsNode { id: number(id)?, operator: None },
        ["serve", id] => Rule::Serve(number(id)?),
        ["group", group, "rsnode", id] => Rule::Group { group: number(group)?, rsnode: Some(number(id)?) },
        ["group", group, "degraded"] => Rule::Group { group: number(group)?, rsnode: None },
        ["own" | "rack" | "host" | "place" | "gone" | "rsnode" | "serve" | "group", ..] => {
            return Err("say: own rack <number> selector <name>; rack <number> has <operator> marker <pod>.<rack>; \
                        host <client> rack <number> group <number>; place <server> rack <number>; place <operator>; \
                        gone <name>; rsnode <id> at <operator>; serve <id>; group <number> rsnode <id>"
                .to_owned());
        }
        _ => return Ok(None),
    };
    Ok(Some(rule))
}

/// `1.2`: pod and rack.
pub(super) fn parse_marker(text: &str) -> Result<u32, String> {
    let (pod, rack) = text.split_once('.').ok_or("a marker is <pod>.<rack>")?;
    Ok(u32::from(number::<u16>(pod)?) << 16 | u32::from(number::<u16>(rack)?))
}
