//! The library's public items, as text: a change of `public_api.txt` is a change for its users.
//! `UPDATE_GOLDEN=1 cargo test -p midflight --test public_api` rewrites it.

#![allow(clippy::unwrap_used, reason = "tests may, in helpers too")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use syn::parse::{ParseStream, Parser};
use syn::visit_mut::{VisitMut, visit_item_mut, visit_item_struct_mut};
use syn::{
    Attribute, Block, Fields, Ident, ImplItem, Item, ItemStruct, Token, UseTree, Visibility, Visibility::Public,
};

/// Modules of the library, and where their items are defined, the first place first.
const SOURCES: [(&str, &[&str]); 4] = [
    ("midflight", &["host/src", "tasks/src/client", "tasks/src/resources.rs", "dataplane/src"]),
    ("functions", &["tasks/src/functions/mod.rs", "tasks/src/functions"]),
    (
        "store",
        &["host/src/store", "store/src/client", "store/src/transaction.rs", "store/src/update.rs", "wire/src/store"],
    ),
    ("cache", &["host/src/cache", "cache/src/client", "cache/src/select/algorithm.rs", "wire/src/cache/backend"]),
];

fn imported(tree: &UseTree) -> Vec<String> {
    match tree {
        UseTree::Path(path) => imported(&path.tree),
        UseTree::Group(group) => group.items.iter().flat_map(imported).collect(),
        UseTree::Name(name) => vec![name.ident.to_string()],
        UseTree::Rename(_) | UseTree::Glob(_) => panic!("name each public item, under its own name"),
    }
}

/// Public names, by module.
fn exports(items: &[Item], module: &str, found: &mut BTreeMap<String, Vec<String>>) {
    for item in items {
        match item {
            Item::Use(one) if matches!(one.vis, Public(_)) => {
                found.entry(module.into()).or_default().extend(imported(&one.tree))
            }
            Item::Mod(inner) => exports(&inner.content.as_ref().unwrap().1, &inner.ident.to_string(), found),
            _ => {}
        }
    }
}

/// The items of a file or folder. The modules of the other programs are separate.
fn parse(path: &Path) -> Vec<Item> {
    if !path.is_dir() {
        let items = syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap().items;
        return items.into_iter().map(written_out).collect();
    }
    let mut entries: BTreeSet<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.retain(|entry| entry.is_dir() || entry.extension().is_some_and(|extension| extension == "rs"));
    entries.retain(|entry| !["host/src/store", "host/src/cache"].iter().any(|apart| entry.ends_with(apart)));
    entries.iter().flat_map(|entry| parse(entry)).collect()
}

/// The structure that `counters!` declares.
fn written_out(item: Item) -> Item {
    let fields = |input: ParseStream<'_>| {
        Attribute::parse_outer(input)?;
        input.parse::<Token![pub]>()?;
        input.parse::<Token![struct]>()?;
        let name = input.parse::<Ident>()?;
        let inner;
        syn::braced!(inner in input);
        let mut fields = String::new();
        while !inner.is_empty() {
            Attribute::parse_outer(&inner)?;
            inner.parse::<Token![pub]>()?;
            fields += &format!("pub {}: u64,", inner.parse::<Ident>()?);
            inner.parse::<Token![,]>()?;
        }
        while !input.is_empty() {
            input.parse::<Ident>()?;
        }
        syn::parse_str(&format!("pub struct {name} {{ {fields} }}"))
    };
    match item {
        Item::Macro(one) if one.mac.path.segments.last().unwrap().ident == "counters" => {
            fields.parse2(one.mac.tokens).unwrap()
        }
        other => other,
    }
}

/// Removes what users cannot see, and comments.
struct Shown;

impl VisitMut for Shown {
    fn visit_attributes_mut(&mut self, attributes: &mut Vec<Attribute>) {
        attributes.retain(|a| ["cfg", "derive", "non_exhaustive"].iter().any(|kept| a.path().is_ident(kept)));
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        block.stmts.clear();
    }

    fn visit_item_struct_mut(&mut self, item: &mut ItemStruct) {
        let is_shown = |field: &syn::Field| matches!(field.vis, Public(_));
        match &mut item.fields {
            Fields::Named(named) => named.named = named.named.clone().into_iter().filter(is_shown).collect(),
            Fields::Unnamed(one) => one.unnamed = one.unnamed.clone().into_iter().filter(is_shown).collect(),
            Fields::Unit => {}
        }
        visit_item_struct_mut(self, item);
    }
}

/// The item as users see it, if it is `name` or an implementation of it.
fn shown(mut item: Item, name: &str) -> Option<Item> {
    let is_it = |vis: &Visibility, ident: &Ident| matches!(vis, Public(_)) && ident == name;
    let is_shown = match &mut item {
        Item::Struct(one) => is_it(&one.vis, &one.ident),
        Item::Enum(one) => is_it(&one.vis, &one.ident),
        Item::Fn(one) => is_it(&one.vis, &one.sig.ident),
        Item::Const(one) => is_it(&one.vis, &one.ident),
        Item::Type(one) => is_it(&one.vis, &one.ident),
        Item::Impl(one) => {
            one.items.retain(|item| matches!(item, ImplItem::Fn(f) if matches!(f.vis, Public(_))));
            let is_of = matches!(&*one.self_ty, syn::Type::Path(of) if of.path.segments.last().unwrap().ident == name);
            is_of && (one.trait_.is_some() || !one.items.is_empty())
        }
        _ => false,
    };
    visit_item_mut(&mut Shown, &mut item);
    is_shown.then_some(item)
}

#[test]
fn the_public_items_are_those_of_the_snapshot() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut found, mut text) = (BTreeMap::new(), BTreeMap::new());
    exports(&parse(&crates.join("midflight/src/lib.rs")), "midflight", &mut found);
    for (module, places) in SOURCES {
        let places: Vec<_> = places.iter().map(|place| parse(&crates.join(place))).collect();
        for name in found.remove(module).unwrap() {
            let items = places.iter().map(|items| items.iter().filter_map(|item| shown(item.clone(), &name)).collect());
            let mut items = items.filter(|items: &Vec<_>| items.iter().any(|item| !matches!(item, Item::Impl(_))));
            let items = items.next().unwrap_or_else(|| panic!("{module}::{name} has no source"));
            let file = syn::File { shebang: None, attrs: Vec::new(), items };
            text.insert(format!("{module}::{name}"), prettyplease::unparse(&file));
        }
    }
    assert!(found.is_empty(), "no sources: {found:?}");
    let text: String = text.iter().map(|(name, written)| format!("// {name}\n{written}\n")).collect();
    let path = crates.join("midflight/tests/public_api.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    assert!(text == expected, "the public API has changed: see the head of this file");
}
