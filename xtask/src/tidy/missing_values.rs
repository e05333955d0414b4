//! No assertion holds because a value is missing: `None < Some(x)` is true, two members of JSON that do not exist are
//! equal, and one that does not exist differs from every value.

use super::Finding;
use crate::regions::Regions;
use crate::tree::Tree;
use proc_macro2::Span;
use std::collections::{BTreeMap, BTreeSet};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    BinOp, Block, Expr, ExprBinary, ExprIndex, ImplItemFn, ItemFn, Lit, Local, Macro, Member, Pat, PatType, Path,
    Token, Type, UnOp,
};

/// A file with none of these has no such comparison: most are not parsed, which takes long.
const MARKS: [&str; 9] =
    ["Value", "[\"", ".get(\"", "as_u64()", "as_i64()", "as_f64()", "as_str()", "< Some(", "<= Some("];

/// Comparisons of tests that hold for members which do not exist.
pub(super) fn missing_values_fail(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.with_suffix(".rs").filter(|file| file.path.starts_with("crates/")) {
        let regions = Regions::of(&file.path, &file.text);
        if !regions.has_tests() || !MARKS.iter().any(|mark| file.text.contains(mark)) {
            continue;
        }
        match comparisons(&file.text) {
            Ok(found) => {
                let in_tests = found.into_iter().filter(|(line, _)| regions.is_test(*line));
                findings.extend(in_tests.map(|(line, message)| Finding::in_line(&file.path, line, message)));
            }
            Err(error) => findings.push(Finding::in_file(&file.path, format!("not read as Rust: {error}"))),
        }
    }
    findings
}

/// The comparisons that hold for members that do not exist: lines from 0 on, and why.
fn comparisons(text: &str) -> syn::Result<BTreeMap<usize, &'static str>> {
    let file = syn::parse_file(text)?;
    let mut values = JsonValues::default();
    values.visit_file(&file);
    let mut comparisons = Comparisons { values: values.0, variables: BTreeMap::new(), found: BTreeMap::new() };
    comparisons.visit_file(&file);
    Ok(comparisons.found)
}

/// What an operand is, if a member of a JSON value does not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// `null`, or what a conversion makes of it.
    Null,
    None,
}

/// What a comparison asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Different,
    /// The first one is less than the second one, or equal to it.
    Less,
}

impl Comparison {
    fn message(self) -> &'static str {
        match self {
            Comparison::Different => "a member of JSON that does not exist differs: take it by `.as_…().expect(…)`",
            Comparison::Less => "a missing value is less than any other: take it by `.as_…().expect(…)`",
            Comparison::Equal => "two members of JSON are equal if neither exists: take one by `.as_…().expect(…)`",
        }
    }
}

/// The names of variables that are JSON values: the file says so, or takes members of them by name.
#[derive(Default)]
struct JsonValues(BTreeSet<String>);

impl<'ast> Visit<'ast> for JsonValues {
    fn visit_pat_type(&mut self, typed: &'ast PatType) {
        if let (Pat::Ident(name), true) = (&*typed.pat, is_value(&typed.ty)) {
            self.0.insert(name.ident.to_string());
        }
        visit::visit_pat_type(self, typed);
    }

    fn visit_expr_index(&mut self, index: &'ast ExprIndex) {
        if let (Some(name), true) = (name_of(&index.expr), is_text(&index.index)) {
            self.0.insert(name);
        }
        visit::visit_expr_index(self, index);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        arguments(call).iter().for_each(|argument| self.visit_expr(argument));
    }
}

/// Whether a type is `Value`, or a reference to one.
fn is_value(of: &Type) -> bool {
    match of {
        Type::Reference(reference) => is_value(&reference.elem),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "Value"),
        _ => false,
    }
}

/// The arguments of a macro that takes expressions; none of another one.
fn arguments(call: &Macro) -> Vec<Expr> {
    let arguments = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(call.tokens.clone());
    arguments.map_or_else(|_| Vec::new(), |arguments| arguments.into_iter().collect())
}

/// The last name of a variable or of a field.
fn name_of(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        Expr::Field(field) => match &field.member {
            Member::Named(name) => Some(name.to_string()),
            Member::Unnamed(_) => None,
        },
        _ => None,
    }
}

fn is_text(expression: &Expr) -> bool {
    matches!(expression, Expr::Lit(literal) if matches!(literal.lit, Lit::Str(_)))
}

/// Collects comparisons, in the order of the file.
struct Comparisons {
    /// Names of JSON values.
    values: BTreeSet<String>,
    /// What variables of the function are, as the last `let` of each name says.
    variables: BTreeMap<String, Option<Missing>>,
    found: BTreeMap<usize, &'static str>,
}

impl<'ast> Visit<'ast> for Comparisons {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.in_function(&function.block);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.in_function(&function.block);
    }

    fn visit_local(&mut self, local: &'ast Local) {
        visit::visit_local(self, local);
        if let (Pat::Ident(name), Some(init)) = (&local.pat, &local.init) {
            let missing = self.missing(&init.expr);
            self.variables.insert(name.ident.to_string(), missing);
        }
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        visit::visit_expr_binary(self, binary);
        let at = binary.op.span();
        match binary.op {
            BinOp::Eq(_) => self.compare(at, Comparison::Equal, &binary.left, &binary.right),
            BinOp::Ne(_) => self.compare(at, Comparison::Different, &binary.left, &binary.right),
            BinOp::Lt(_) | BinOp::Le(_) => self.compare(at, Comparison::Less, &binary.left, &binary.right),
            BinOp::Gt(_) | BinOp::Ge(_) => self.compare(at, Comparison::Less, &binary.right, &binary.left),
            _ => {}
        }
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let arguments = arguments(call);
        arguments.iter().for_each(|argument| self.visit_expr(argument));
        let comparison = match call.path.get_ident().map(ToString::to_string).as_deref() {
            Some("assert_eq") => Comparison::Equal,
            Some("assert_ne") => Comparison::Different,
            _ => return,
        };
        if let [left, right, ..] = &arguments[..] {
            self.compare(call.path.span(), comparison, left, right);
        }
    }
}

impl Comparisons {
    /// A function has its own variables.
    fn in_function(&mut self, block: &Block) {
        let outer = std::mem::take(&mut self.variables);
        self.visit_block(block);
        self.variables = outer;
    }

    fn compare(&mut self, at: Span, comparison: Comparison, left: &Expr, right: &Expr) {
        if self.holds_without(comparison, left, right) {
            self.found.insert(at.start().line - 1, comparison.message());
        }
    }

    /// Whether the comparison can hold because a member does not exist. Tuples are compared by their parts.
    fn holds_without(&self, comparison: Comparison, left: &Expr, right: &Expr) -> bool {
        if let (Some(lefts), Some(rights)) = (parts(left), parts(right))
            && comparison != Comparison::Less
        {
            return lefts.iter().zip(rights).any(|(left, right)| self.holds_without(comparison, left, right));
        }
        let (missing_left, missing_right) = (self.missing(left), self.missing(right));
        match comparison {
            Comparison::Equal => match (missing_left, missing_right) {
                (Some(_), Some(_)) => true,
                (Some(Missing::None), None) => is_open(right),
                (None, Some(Missing::None)) => is_open(left),
                _ => false,
            },
            Comparison::Different => {
                (missing_left.is_some() && !is_absent(right)) || (missing_right.is_some() && !is_absent(left))
            }
            // `null` has no order.
            Comparison::Less => {
                let is_none = |missing| missing == Some(Missing::None);
                let is_option = is_some(right) || is_absent(right) || is_conversion(left);
                (is_option && !is_some(left)) || is_none(missing_left) || (is_none(missing_right) && is_open(left))
            }
        }
    }

    /// What the operand is if the member of JSON that it takes does not exist; `None` if it takes none, or fails.
    fn missing(&self, operand: &Expr) -> Option<Missing> {
        match operand {
            Expr::Reference(reference) => self.missing(&reference.expr),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => self.missing(&unary.expr),
            Expr::Paren(paren) => self.missing(&paren.expr),
            Expr::Try(tried) => self.missing(&tried.expr),
            Expr::Path(path) => self.variables.get(&path.path.get_ident()?.to_string()).copied().flatten(),
            Expr::Index(index) if self.is_key(index) => Some(Missing::Null),
            Expr::Index(index) => self.missing(&index.expr),
            Expr::MethodCall(call) => {
                let of_receiver = self.missing(&call.receiver);
                match call.method.to_string().as_str() {
                    "clone" | "cloned" | "copied" | "to_owned" | "as_ref" | "as_deref" | "map" | "and_then" => {
                        of_receiver
                    }
                    "unwrap_or" | "unwrap_or_default" | "to_string" => of_receiver.map(|_| Missing::Null),
                    "get" if call.args.len() == 1 && is_text(&call.args[0]) => Some(Missing::None),
                    "as_u64" | "as_i64" | "as_f64" | "as_bool" | "as_str" | "as_array" | "as_object" => {
                        of_receiver.map(|_| Missing::None)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether an index is the name of a member.
    fn is_key(&self, index: &ExprIndex) -> bool {
        let is_variable = matches!(&*index.index, Expr::Path(path) if path.path.get_ident().is_some());
        is_text(&index.index) || (is_variable && name_of(&index.expr).is_some_and(|name| self.values.contains(&name)))
    }
}

/// The parts of `(a, b)` or `[a, b]`.
fn parts(expression: &Expr) -> Option<&Punctuated<Expr, Token![,]>> {
    let parts = match expression {
        Expr::Tuple(tuple) => &tuple.elems,
        Expr::Array(array) => &array.elems,
        _ => return None,
    };
    (parts.len() > 1).then_some(parts)
}

/// `None`, or JSON's `null`.
fn is_absent(expression: &Expr) -> bool {
    match expression {
        Expr::Reference(reference) => is_absent(&reference.expr),
        Expr::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "None" || last.ident == "Null"),
        Expr::Macro(call) => call.mac.path.is_ident("json") && call.mac.tokens.to_string() == "null",
        _ => false,
    }
}

/// `Some(…)`.
fn is_some(expression: &Expr) -> bool {
    matches!(expression, Expr::Call(call) if matches!(&*call.func, Expr::Path(path) if path.path.is_ident("Some")))
}

/// The number or text of a JSON value, if it is one.
fn is_conversion(expression: &Expr) -> bool {
    matches!(expression, Expr::MethodCall(call)
        if ["as_u64", "as_i64", "as_f64", "as_str"].iter().any(|name| call.method == name))
}

/// Whether the expression may be `None` too: it is no literal and no constant.
fn is_open(expression: &Expr) -> bool {
    let is_constant = |path: &Path| {
        let first = path.segments.first().map(|first| first.ident.to_string()).unwrap_or_default();
        first.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    match expression {
        Expr::Lit(_) => false,
        Expr::Path(path) => !is_absent(expression) && !is_constant(&path.path),
        _ => !is_some(expression) && !is_absent(expression),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a test in which a comparison is found. Statements are those of a function.
    fn lines(text: &str) -> Vec<usize> {
        let text = if text.starts_with("fn ") { text.to_owned() } else { format!("fn of_tests() {{ {text} }}") };
        let findings = missing_values_fail(&Tree::of(&[("crates/rc/tests/rc/main.rs", &text)]));
        findings.into_iter().map(|finding| finding.line).collect()
    }

    fn are_found(wrong: &[&str], good: &[&str]) {
        for text in wrong {
            assert_eq!(lines(text).len(), 1, "{text}");
        }
        for text in good {
            assert_eq!(lines(text), [0; 0], "{text}");
        }
    }

    #[test]
    fn assertions_that_hold_without_a_value_are_found() {
        let wrong = [
            r#"assert!(a["b"].as_u64() < Some(3));"#,
            "assert!(a.as_f64() <= b.as_f64());",
            "assert!(a <= Some(3));",
            r#"assert_eq!(receiver["sha256"], result["source"]["sha256"], "{receiver}");"#,
            r#"assert_eq!(a["b"].as_u64(), c["d"].as_u64());"#,
            r#"assert!(all.iter().all(|host| host["sha256"] == source["sha256"]));"#,
            r#"assert!(after["load"].as_f64() >= after["bound"].as_f64(), "{name}");"#,
        ];
        let good = [
            "assert!(a.as_u64() > Some(3) && a.as_u64().expect(\"a\") < 3);",
            r#"assert_eq!(receiver["sha256"], source["sha256"].as_str().expect("a digest"), "{receiver}");"#,
            r#"assert_eq!(run["lost"], 0); let other = run["lost"];"#,
            r#"assert!(a["b"].as_u64() == Some(3) && c["d"] == "text");"#,
            r#"assert_eq!(found, ["a", "b"]);"#,
        ];
        are_found(&wrong, &good);
    }

    #[test]
    fn products_are_not_read_and_what_is_no_rust_is_found() {
        let found = |path: &str, text: &str| missing_values_fail(&Tree::of(&[(path, text)]));
        let compared = "fn f() { if a.as_u64() < b {} }";
        assert!(found("crates/rc/src/lib.rs", compared).is_empty());
        assert_eq!(found("crates/rc/tests/rc/main.rs", compared).len(), 1);
        assert!(found("crates/rc/tests/rc/main.rs", "fn f( { a[\"b\"] }")[0].message.starts_with("not read as Rust: "));
    }

    #[test]
    fn tuples_are_compared_by_their_parts() {
        let wrong = [
            r#"assert_eq!((&one["digest"], &one["counts"]), (&three["digest"], &three["counts"]));"#,
            r#"assert_eq!((&a["sha256"], &a["matches"]), (&b["sha256"], &Value::Bool(true)), "{host}");"#,
            r#"assert!((a["b"].as_str(), 3) == (c["d"].as_str(), 3));"#,
            r#"assert_eq!([&a["b"], &a["c"]], [&0.into(), &d["c"]]);"#,
        ];
        let good = [
            r#"assert_eq!((&a["b"], &a["c"]), (&1.into(), &2.into()), "{a}");"#,
            r#"assert_eq!((&a["b"], &Value::Null), (&digest, &c["d"]));"#,
            r#"assert_eq!((packet["ipv6.src"].as_str(), packet["op"].as_str()), (PROXY, "129"));"#,
        ];
        are_found(&wrong, &good);
        let text = "assert!(true);\nassert_eq!(\n    (&a[\"b\"], &a[\"c\"]),\n    (&d[\"b\"], &0.into()),\n);\n";
        assert_eq!(lines(text), [2]);
    }

    #[test]
    fn differences_from_a_missing_member_are_found() {
        let wrong = [
            r#"assert_ne!(counters["lost"], 0, "{counters}");"#,
            r#"assert_ne!(now["tree"][1][1].as_str(), Some(spine.as_str()));"#,
            r#"assert!(links.iter().any(|link| link["lost"] != 0), "{result}");"#,
            r#"let is_gone = || status()["circuits"][0]["state"] != "up";"#,
            r#"assert!(0 != a["b"].clone());"#,
            r#"assert!(a["b"].as_u64().unwrap_or_default() != 3);"#,
            r#"assert_ne!(a["b"], '"');"#,
        ];
        let good = [
            r#"assert_ne!(counters["lost"].as_u64().expect("a counter"), 0, "{counters}");"#,
            r#"assert!(a["b"] != Value::Null && a["c"].as_u64() != None && a["d"] != json!(null));"#,
            r#"assert_ne!(a["b"].as_array().unwrap().len(), 2);"#,
            r#"assert!(names != ["a"] && hash(["a", "b"]) != hash(["c"]));"#,
        ];
        are_found(&wrong, &good);
    }

    #[test]
    fn comparisons_with_other_options_are_found() {
        let wrong = [
            r#"assert!(a["b"].as_u64() > a["c"]["d"].as_u64().map(|packets| 3 * packets));"#,
            r#"assert!(Some(3) > a["b"].as_u64());"#,
            r#"assert!(a["b"].as_u64() >= limit);"#,
            r#"assert!(a["b"].as_u64() < limit);"#,
            r#"assert_eq!(a["b"].as_u64(), number(cell));"#,
            r#"assert!(before == a.get("b"));"#,
        ];
        let good = [
            r#"assert!(a["b"].as_u64() > Some(0) && a["c"].as_u64() >= Some(b["c"].as_u64().unwrap()));"#,
            r#"assert!(a["b"].as_u64().expect("a number") > 3 * a["c"].as_u64().expect("a number"));"#,
            r#"assert_eq!(a["b"].as_str(), None); assert!(counts["refused"] > 0);"#,
            r#"let a: Vec<Option<u64>> = b["c"].as_array().unwrap().iter().map(Value::as_u64).collect::<Vec<_>>();"#,
            r#"assert_eq!(jobs.get("a", "b"), Err(Unknown)); assert!(Some(map["a"]) == "b".get(0));"#,
        ];
        are_found(&wrong, &good);
    }

    #[test]
    fn members_by_variables_are_found() {
        let json = "fn same(a: &Value, b: &serde_json::Value, c: &[u64]) {\n    ";
        for wrong in ["assert_eq!(a[name], b[name]);", "assert!(a[name].as_u64() == b[name].as_u64());"] {
            assert_eq!(lines(&format!("{json}{wrong}\n}}")), [2], "{wrong}");
        }
        for good in ["assert_eq!(c[at], c[other]);", "assert_eq!(a[name], c[at]);", "assert_ne!(c[at], c[other]);"] {
            assert_eq!(lines(&format!("{json}{good}\n}}")), [0; 0], "{good}");
        }
        let named_elsewhere = "let all = a[\"b\"];\nassert_eq!(a[name], a[other]);";
        assert_eq!(lines(named_elsewhere), [2]);
    }

    #[test]
    fn variables_that_are_members_are_found() {
        let taken =
            "fn a() {\n    let digest = b[\"sha256\"].clone();\n}\nfn b() {\n    let digest = of(&b[\"sha256\"]);\n";
        let compared = "    assert_eq!(received[\"sha256\"], digest);\n";
        assert_eq!(lines(&format!("{taken}{compared}}}")), [0; 0]);
        let again = "    let digest = sent[\"sha256\"].as_str();\n    let digest = digest.map(str::to_owned);\n";
        assert_eq!(lines(&format!("{taken}{again}{compared}}}")), [8]);
    }
}
