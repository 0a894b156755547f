//! Methods of a type in a file, and the methods of it that are called there.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprMethodCall, ExprPath, ImplItem, ItemImpl, ItemMod, Macro, Token, Type,
};

/// Macros that state what must hold.
const ASSERTIONS: [&str; 7] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "unreachable",
];

/// What a file has, without its unit tests.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: String,
    /// Methods in its `impl` blocks of the type that are of no trait.
    pub(super) methods: Vec<String>,
    /// Names of methods that are called on what is of the type by its name: `self` in
    /// such a block, a variable or a field with the name of the type in lower case, or
    /// the type itself.
    pub(super) calls: BTreeSet<String>,
    /// With unit tests, comments and empty lines.
    pub(super) lines: usize,
    pub(super) assertions: usize,
}

impl Source {
    /// Reads a file.
    ///
    /// # Errors
    /// It is not Rust.
    pub(super) fn parse(name: &str, text: &str, of_type: &str) -> Result<Self> {
        let file = syn::parse_file(text).with_context(|| format!("{name} is not Rust"))?;
        let mut reader = Reader {
            of_type,
            variable: of_type.to_lowercase(),
            is_self: false,
            source: Self {
                name: name.to_owned(),
                methods: Vec::new(),
                calls: BTreeSet::new(),
                lines: text.lines().count(),
                assertions: 0,
            },
        };
        reader.visit_file(&file);
        Ok(reader.source)
    }
}

struct Reader<'a> {
    of_type: &'a str,
    variable: String,
    /// `self` is of the type.
    is_self: bool,
    source: Source,
}

impl Reader<'_> {
    /// Whether a receiver is of the type, by its name.
    fn is_of_type(&self, receiver: &Expr) -> bool {
        match receiver {
            Expr::Path(path) => {
                path.path.is_ident("self") && self.is_self || path.path.is_ident(&self.variable)
            }
            Expr::Field(field) => match &field.member {
                syn::Member::Named(name) => *name == self.variable,
                syn::Member::Unnamed(_) => false,
            },
            Expr::Reference(of) => self.is_of_type(&of.expr),
            Expr::Paren(of) => self.is_of_type(&of.expr),
            _ => false,
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !module.attrs.iter().any(is_for_tests) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        let is_of_type = match &*block.self_ty {
            Type::Path(path) => {
                let last = path.path.segments.last();
                last.is_some_and(|last| last.ident == self.of_type)
            }
            _ => false,
        };
        if is_of_type && block.trait_.is_none() {
            for item in &block.items {
                if let ImplItem::Fn(method) = item {
                    self.source.methods.push(method.sig.ident.to_string());
                }
            }
        }
        let was_self = std::mem::replace(&mut self.is_self, is_of_type);
        visit::visit_item_impl(self, block);
        self.is_self = was_self;
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if self.is_of_type(&call.receiver) {
            self.source.calls.insert(call.method.to_string());
        }
        visit::visit_expr_method_call(self, call);
    }

    /// `Drive::method` and `Self::method`, whether they are called there or handed on.
    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        let segments: Vec<String> = path
            .path
            .segments
            .iter()
            .map(|of| of.ident.to_string())
            .collect();
        if let [.., owner, method] = &segments[..]
            && (owner == self.of_type || owner == "Self" && self.is_self)
        {
            self.source.calls.insert(method.clone());
        }
        visit::visit_expr_path(self, path);
    }

    /// Expressions between commas, as in an assertion.
    fn visit_macro(&mut self, of: &'ast Macro) {
        let name = of.path.segments.last().map(|of| of.ident.to_string());
        let is_assertion = name.is_some_and(|name| ASSERTIONS.contains(&name.as_str()));
        self.source.assertions += usize::from(is_assertion);
        let arguments = Punctuated::<Expr, Token![,]>::parse_terminated;
        if let Ok(arguments) = arguments.parse2(of.tokens.clone()) {
            for argument in &arguments {
                // It does not live as long as the file.
                let mut inner = Reader {
                    of_type: self.of_type,
                    variable: self.variable.clone(),
                    is_self: self.is_self,
                    source: Source {
                        name: String::new(),
                        methods: Vec::new(),
                        calls: BTreeSet::new(),
                        lines: 0,
                        assertions: 0,
                    },
                };
                inner.visit_expr(argument);
                self.source.calls.append(&mut inner.source.calls);
                self.source.assertions += inner.source.assertions;
            }
        }
    }
}

/// `#[cfg(test)]`.
fn is_for_tests(attribute: &Attribute) -> bool {
    let condition = attribute.parse_args::<syn::Ident>();
    attribute.path().is_ident("cfg") && condition.is_ok_and(|of| of == "test")
}
