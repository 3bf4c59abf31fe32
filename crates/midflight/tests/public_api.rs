//! The library's public items, as text: a change of `public_api.txt` is a change for its users.
//! `UPDATE_GOLDEN=1 cargo test -p midflight --test public_api` rewrites it.

#![allow(clippy::unwrap_used, reason = "tests may, in helpers too")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use syn::{Attribute, Fields, ImplItem, Item, UseTree, Visibility};

/// Modules of the library, and where their items are defined, the first place first.
const SOURCES: [(&str, &[&str]); 4] = [
    ("midflight", &["host/src", "tasks/src/client", "tasks/src/resources.rs", "dataplane/src"]),
    ("functions", &["tasks/src/functions.rs", "tasks/src/functions"]),
    ("store", &["host/src/store", "store/src/client"]),
    ("cache", &["host/src/cache", "cache/src/client", "cache/src/select/algorithm.rs", "wire/src/cache/backend"]),
];

/// The names that a tree of `use` imports.
fn leaves(tree: &UseTree) -> Vec<String> {
    match tree {
        UseTree::Path(path) => leaves(&path.tree),
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
        UseTree::Name(name) => vec![name.ident.to_string()],
        UseTree::Rename(_) | UseTree::Glob(_) => panic!("name each public item, under its own name"),
    }
}

fn exports(items: &[Item], module: &str, found: &mut Vec<(String, String)>) {
    for item in items {
        match item {
            Item::Use(import) if matches!(import.vis, Visibility::Public(_)) => {
                found.extend(leaves(&import.tree).into_iter().map(|name| (module.to_owned(), name)));
            }
            Item::Mod(inner) => exports(&inner.content.as_ref().unwrap().1, &inner.ident.to_string(), found),
            _ => {}
        }
    }
}

fn parse(path: &Path, items: &mut Vec<Item>) {
    if path.is_dir() {
        let mut entries: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        // The modules of the other programs are separate.
        entries.retain(|entry| !(path.ends_with("host/src") && (entry.ends_with("store") || entry.ends_with("cache"))));
        entries.iter().for_each(|entry| parse(entry, items));
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        items.extend(syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap().items);
    }
}

/// What users see of attributes: what is derived, and when an item is there.
fn keep(attributes: &mut Vec<Attribute>) {
    attributes.retain(|a| ["cfg", "derive", "non_exhaustive"].iter().any(|kept| a.path().is_ident(kept)));
}

fn fields(fields: &mut Fields, is_enum: bool) {
    let public = |field: &syn::Field| is_enum || matches!(field.vis, Visibility::Public(_));
    match fields {
        Fields::Named(named) => named.named = named.named.clone().into_iter().filter(public).collect(),
        Fields::Unnamed(one) => one.unnamed = one.unnamed.clone().into_iter().filter(public).collect(),
        Fields::Unit => {}
    }
    fields.iter_mut().for_each(|field| keep(&mut field.attrs));
}

/// The item without what users cannot see, if it is `name` or an implementation of it.
fn visible(mut item: Item, name: &str) -> Option<Item> {
    let is_public = |vis: &Visibility, ident: &syn::Ident| matches!(vis, Visibility::Public(_)) && ident == name;
    match &mut item {
        Item::Struct(one) if is_public(&one.vis, &one.ident) => {
            keep(&mut one.attrs);
            fields(&mut one.fields, false);
        }
        Item::Enum(one) if is_public(&one.vis, &one.ident) => {
            keep(&mut one.attrs);
            for variant in &mut one.variants {
                keep(&mut variant.attrs);
                fields(&mut variant.fields, true);
            }
        }
        Item::Fn(one) if is_public(&one.vis, &one.sig.ident) => {
            keep(&mut one.attrs);
            one.block.stmts.clear();
        }
        Item::Const(one) if is_public(&one.vis, &one.ident) => keep(&mut one.attrs),
        Item::Type(one) if is_public(&one.vis, &one.ident) => keep(&mut one.attrs),
        Item::Impl(one) => {
            let syn::Type::Path(of) = &*one.self_ty else { return None };
            if of.path.segments.last().unwrap().ident != name {
                return None;
            }
            keep(&mut one.attrs);
            let is_trait = one.trait_.is_some();
            one.items.retain(|item| !is_trait && matches!(item, ImplItem::Fn(f) if matches!(f.vis, Visibility::Public(_))));
            for item in &mut one.items {
                let ImplItem::Fn(function) = item else { continue };
                keep(&mut function.attrs);
                function.block.stmts.clear();
            }
            if !is_trait && one.items.is_empty() {
                return None;
            }
        }
        _ => return None,
    }
    Some(item)
}

#[test]
fn the_public_items_are_those_of_the_snapshot() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let library = syn::parse_file(&fs::read_to_string(crates.join("midflight/src/lib.rs")).unwrap()).unwrap();
    let (mut found, mut text) = (Vec::new(), BTreeMap::new());
    exports(&library.items, "midflight", &mut found);
    for (module, name) in found {
        let (_, places) = SOURCES.iter().find(|(of, _)| *of == module).expect("a module of SOURCES");
        let shown = places.iter().find_map(|place| {
            let mut items = Vec::new();
            parse(&crates.join(place), &mut items);
            let items: Vec<_> = items.into_iter().filter_map(|item| visible(item, &name)).collect();
            let is_defined = items.iter().any(|item| !matches!(item, Item::Impl(_)));
            is_defined.then(|| prettyplease::unparse(&syn::File { shebang: None, attrs: Vec::new(), items }))
        });
        text.insert(format!("{module}::{name}"), shown.unwrap_or_else(|| panic!("{module}::{name} is not in SOURCES")));
    }
    let text: String = text.iter().map(|(name, shown)| format!("// {name}\n{shown}\n")).collect();
    let path = crates.join("midflight/tests/public_api.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    let changed = text.lines().zip(expected.lines()).find(|(is, was)| is != was);
    assert!(text == expected, "the public API has changed, first {changed:?}: see the head of this file");
}
