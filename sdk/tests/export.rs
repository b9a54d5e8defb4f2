//! Compiler messages for a wrong use of `export!`: each file of `export/` has the expected message
//! beside it. `TRYBUILD=overwrite` writes the messages anew.

#[test]
fn the_compiler_says_how_an_agent_is_exported() {
    trybuild::TestCases::new().compile_fail("tests/export/*.rs");
}
