//! Compiler messages for a wrong use of `export!`: each file of `export/` has the expected message
//! beside it. `TRYBUILD=overwrite` writes the messages anew.

#[test]
fn wrong_exports_give_helpful_errors() {
    trybuild::TestCases::new().compile_fail("tests/export/*.rs");
}
