//! Arithmetic and comparisons over numbers that have names.
//!
//! Precedence, from weak to strong: `||`, `&&`, comparisons, `+ -`, `* / %`, `^`, `min` and
//! `max` between numbers, signs and `!`. Operators of one strength are taken from left to
//! right. True is 1 and false is 0. Functions are those of `libm`, whose results are the same
//! on every machine.

use winnow::combinator::{
    self, Infix, Prefix, alt, delimited, eof, fail, separated_pair, terminated,
};
use winnow::error::EmptyError;
use winnow::token::any;
use winnow::{Parser, Result as Parsed};

use super::knob::Wrong;
use super::quantity::Quantity;

/// Most parts that an expression may have.
const MOST_TOKENS: usize = 1000;
/// Parentheses that may be open at once.
const MOST_NESTED: usize = 32;

/// An expression.
#[derive(Clone, Debug)]
pub(crate) struct Expression(Term);

#[derive(Clone, Debug)]
enum Term {
    Number(f64),
    /// The place of its value among those that [`Expression::value`] is given.
    Variable(usize),
    Unary(Unary, Box<Term>),
    Binary(Binary, Box<[Term; 2]>),
}

type Unary = fn(f64) -> f64;
type Binary = fn(f64, f64) -> f64;

/// A part of an expression that its user gives a meaning to.
pub(crate) enum Word<'a> {
    /// `drive.finish.granularity`.
    Name(&'a str),
    /// What stands in quotes.
    Text(&'a str),
}

/// What a [`Word`] stands for.
pub(crate) enum Meaning {
    /// A number that never changes.
    Number(f64),
    /// The place of its value among those that [`Expression::value`] is given.
    Variable(usize),
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Variable(usize),
    Function(Function),
    /// An operator, a parenthesis, or a comma.
    Symbol(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Function {
    Min,
    Max,
    Abs,
    Floor,
    Ceil,
    Sqrt,
    Log2,
}

/// Longer ones first, since `<` begins `<=`.
const SYMBOLS: [&str; 18] = [
    "||", "&&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "^", "!", "(", ")", ",",
];

impl Function {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "min" => Self::Min,
            "max" => Self::Max,
            "abs" => Self::Abs,
            "floor" => Self::Floor,
            "ceil" => Self::Ceil,
            "sqrt" => Self::Sqrt,
            "log2" => Self::Log2,
            _ => return None,
        })
    }

    const fn unary(self) -> Option<Unary> {
        Some(match self {
            Self::Abs => f64::abs,
            Self::Floor => f64::floor,
            Self::Ceil => f64::ceil,
            Self::Sqrt => f64::sqrt,
            Self::Log2 => libm::log2,
            Self::Min | Self::Max => return None,
        })
    }

    const fn binary(self) -> Option<Binary> {
        match self {
            Self::Min => Some(f64::min),
            Self::Max => Some(f64::max),
            _ => None,
        }
    }
}

impl Expression {
    /// Reads an expression whose names and texts mean what `meaning` says.
    ///
    /// # Errors
    /// It is none, or `meaning` knows a word not.
    pub(crate) fn parse(
        text: &str,
        meaning: &mut dyn FnMut(Word<'_>) -> Result<Meaning, Wrong>,
    ) -> Result<Self, Wrong> {
        let tokens = tokens(text, meaning)?;
        let term = terminated(expression, eof).parse(tokens.as_slice());
        let term = term.map_err(|error| {
            let at = match tokens.get(error.offset()) {
                Some(Token::Symbol(symbol)) => format!("at {symbol}"),
                Some(_) => format!("at part {}", error.offset() + 1),
                None => "it ends too early".to_owned(),
            };
            Wrong::new(
                format!("\"{text}\" is no expression: {at}"),
                "write for example \"a <= 4 * b\"",
            )
        })?;
        Ok(Self(term))
    }

    /// Its value; that of a variable without a value is not a number.
    pub(crate) fn value(&self, values: &[f64]) -> f64 {
        self.0.value(values)
    }

    /// Its value if it and all of its parts have a finite one: nothing is known of the
    /// larger of 1 and a number that was not measured.
    pub(crate) fn known(&self, values: &[f64]) -> Option<f64> {
        self.0.known(values)
    }
}

impl Term {
    fn value(&self, values: &[f64]) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Variable(place) => values.get(*place).copied().unwrap_or(f64::NAN),
            Self::Unary(apply, term) => apply(term.value(values)),
            Self::Binary(apply, terms) => apply(terms[0].value(values), terms[1].value(values)),
        }
    }

    fn known(&self, values: &[f64]) -> Option<f64> {
        let value = match self {
            Self::Number(_) | Self::Variable(_) => self.value(values),
            Self::Unary(apply, term) => apply(term.known(values)?),
            Self::Binary(apply, terms) => apply(terms[0].known(values)?, terms[1].known(values)?),
        };
        value.is_finite().then_some(value)
    }
}

/// True and false as numbers.
fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// Whether a number stands for something true; what is not a number does not.
pub(crate) fn is_true(value: f64) -> bool {
    value != 0.0 && !value.is_nan()
}

type Input<'t> = &'t [Token];

fn symbol<'t>(wanted: &'static str) -> impl Parser<Input<'t>, Token, EmptyError> {
    any.verify(move |token| matches!(token, Token::Symbol(symbol) if *symbol == wanted))
}

fn expression(input: &mut Input<'_>) -> Parsed<Term, EmptyError> {
    combinator::expression(operand)
        .prefix(prefix)
        .infix(infix)
        .parse_next(input)
}

fn operand(input: &mut Input<'_>) -> Parsed<Term, EmptyError> {
    let token = any.parse_next(input)?;
    match token {
        Token::Number(number) => Ok(Term::Number(number)),
        Token::Variable(place) => Ok(Term::Variable(place)),
        Token::Symbol("(") => terminated(expression, symbol(")")).parse_next(input),
        Token::Function(function) => arguments(function, input),
        Token::Symbol(_) => fail.parse_next(input),
    }
}

fn arguments(function: Function, input: &mut Input<'_>) -> Parsed<Term, EmptyError> {
    if let Some(apply) = function.binary() {
        let pair = separated_pair(expression, symbol(","), expression);
        let (a, b) = delimited(symbol("("), pair, symbol(")")).parse_next(input)?;
        return Ok(Term::Binary(apply, Box::new([a, b])));
    }
    let Some(apply) = function.unary() else {
        return fail.parse_next(input);
    };
    let one = delimited(symbol("("), expression, symbol(")"));
    let one = alt((one, operand)).parse_next(input)?;
    Ok(Term::Unary(apply, Box::new(one)))
}

fn prefix<'t>(input: &mut Input<'t>) -> Parsed<Prefix<Input<'t>, Term, EmptyError>, EmptyError> {
    const POWER: i64 = 8;
    Ok(match any.parse_next(input)? {
        Token::Symbol("-") => Prefix(POWER, |_, a| Ok(Term::Unary(|a| -a, Box::new(a)))),
        Token::Symbol("!") => Prefix(POWER, |_, a| {
            Ok(Term::Unary(|a| truth(!is_true(a)), Box::new(a)))
        }),
        _ => return fail.parse_next(input),
    })
}

#[expect(clippy::float_cmp, reason = "equal is what was asked for")]
fn infix<'t>(input: &mut Input<'t>) -> Parsed<Infix<Input<'t>, Term, EmptyError>, EmptyError> {
    /// An operator of a strength, and what it does to two numbers.
    macro_rules! left {
        ($power:literal, $apply:expr) => {
            Infix::Left($power, |_, a, b| Ok(Term::Binary($apply, Box::new([a, b]))))
        };
    }
    let symbol = match any.parse_next(input)? {
        Token::Symbol(symbol) => symbol,
        Token::Function(Function::Min) => return Ok(left!(7, f64::min)),
        Token::Function(Function::Max) => return Ok(left!(7, f64::max)),
        _ => return fail.parse_next(input),
    };
    Ok(match symbol {
        "||" => left!(1, |a, b| truth(is_true(a) || is_true(b))),
        "&&" => left!(2, |a, b| truth(is_true(a) && is_true(b))),
        "==" => left!(3, |a, b| truth(a == b)),
        "!=" => left!(3, |a, b| truth(a != b)),
        "<=" => left!(3, |a, b| truth(a <= b)),
        ">=" => left!(3, |a, b| truth(a >= b)),
        "<" => left!(3, |a, b| truth(a < b)),
        ">" => left!(3, |a, b| truth(a > b)),
        "+" => left!(4, |a, b| a + b),
        "-" => left!(4, |a, b| a - b),
        "*" => left!(5, |a, b| a * b),
        "/" => left!(5, |a, b| a / b),
        "%" => left!(5, |a, b| a % b),
        "^" => left!(6, libm::pow),
        _ => return fail.parse_next(input),
    })
}

/// The parts of `text`, with what words mean in place of them.
fn tokens(
    text: &str,
    meaning: &mut dyn FnMut(Word<'_>) -> Result<Meaning, Wrong>,
) -> Result<Vec<Token>, Wrong> {
    let mut tokens = Vec::new();
    let (mut rest, mut open) = (text.trim_start(), 0_usize);
    while let Some(first) = rest.chars().next() {
        let (token, length) = if first.is_ascii_alphabetic() || first == '_' {
            let name = take(rest, |c| c.is_ascii_alphanumeric() || "_.".contains(c));
            let token = match Function::of(name) {
                Some(function) => Token::Function(function),
                None => meant(meaning(Word::Name(name))?),
            };
            (token, name.len())
        } else if first.is_ascii_digit() {
            let digits = quantity(rest);
            (Token::Number(in_base_units(digits)?), digits.len())
        } else if first == '"' || first == '\'' {
            let inner = take(&rest[1..], |c| c != first);
            // Without its end it goes to the end of the text.
            let length = (inner.len() + 2).min(rest.len());
            (meant(meaning(Word::Text(inner))?), length)
        } else if let Some(symbol) = SYMBOLS.into_iter().find(|one| rest.starts_with(one)) {
            match symbol {
                "(" => open += 1,
                ")" => open = open.saturating_sub(1),
                _ => {}
            }
            (Token::Symbol(symbol), symbol.len())
        } else {
            return Err(Wrong::new(
                format!("\"{text}\": {first} means nothing here"),
                "names, numbers with units, \"texts\", + - * / % ^, == != < <= > >=, && || !, and \
                 parentheses",
            ));
        };
        tokens.push(token);
        if tokens.len() > MOST_TOKENS || open > MOST_NESTED {
            return Err(Wrong::new(
                "the expression is too long or too deep",
                format!("at most {MOST_TOKENS} parts, and {MOST_NESTED} parentheses in each other"),
            ));
        }
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

const fn meant(meaning: Meaning) -> Token {
    match meaning {
        Meaning::Number(number) => Token::Number(number),
        Meaning::Variable(place) => Token::Variable(place),
    }
}

/// The longest beginning of `text` of characters that are `wanted`.
fn take(text: &str, wanted: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !wanted(c)).unwrap_or(text.len());
    &text[..end]
}

/// The beginning of `text` that is a number and its unit.
fn quantity(text: &str) -> &str {
    let digits = take(text, |c| c.is_ascii_digit() || "._".contains(c));
    let unit = take(&text[digits.len()..], |c| {
        c.is_ascii_alphabetic() || c == '%'
    });
    let mut end = digits.len() + unit.len();
    // `4MiB/s`, but not the quotient of `4MiB` and `size`.
    let after = text[end..].strip_prefix("/s");
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if !unit.is_empty() && unit.ends_with('B') && after.is_some_and(ends) {
        end += 2;
    }
    &text[..end]
}

fn in_base_units(text: &str) -> Result<f64, Wrong> {
    number(text).ok_or_else(|| {
        Wrong::new(
            format!("{text} is no number, size, time, rate or share"),
            "write for example 64KiB, 1.5ms, 10MiB/s, 5%",
        )
    })
}

/// The number that a text says, in base units.
pub(super) fn number(text: &str) -> Option<f64> {
    match text {
        "true" => return Some(1.0),
        "false" => return Some(0.0),
        _ => {}
    }
    let quantity = Quantity::of(text).map(|(_, value)| value as f64);
    let plain = || text.parse().ok().filter(|value: &f64| value.is_finite());
    quantity.or_else(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<f64, Wrong> {
        let mut meaning = |word: Word<'_>| match word {
            Word::Name("a") => Ok(Meaning::Variable(0)),
            Word::Name(other) | Word::Text(other) => Err(Wrong::new(other, "a")),
        };
        Ok(Expression::parse(text, &mut meaning)?.value(&[3.0]))
    }

    #[test]
    fn strength_and_order_are_those_of_arithmetic() {
        for (text, expected) in [
            ("1 + 2 * a", 7.0),
            ("(1 + 2) * a", 9.0),
            ("10 - 2 - a", 5.0),
            ("2 ^ a * 2", 16.0),
            ("2 * -a", -6.0),
            ("--a", 3.0),
            ("!(a > 2) + 1", 1.0),
            ("a > 2 && a < 4 || 0 / 0", 1.0),
            ("max(1, min(a, 2)) + abs(-a)", 5.0),
            ("sqrt(a * a)", 3.0),
            ("7 % a", 1.0),
            ("(1 max a min 5) / 2 max 1", 1.5),
        ] {
            assert_eq!(
                value(text).unwrap().to_bits(),
                f64::to_bits(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_too_long_or_no_expression_is_refused() {
        let deep = "(".repeat(100_000);
        let long = "-".repeat(100_000) + "a";
        for text in [
            "",
            "a a",
            "a +",
            ") a",
            "min(a)",
            "abs",
            "a == == 2",
            &deep,
            &long,
        ] {
            assert!(value(text).is_err(), "{:.20}", text);
        }
    }
}
