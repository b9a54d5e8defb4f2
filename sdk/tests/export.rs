//! What a newcomer is told by the compiler who exports an agent in a way that makes none: each file of `export/` stands beside what the
//! compiler says of it. `TRYBUILD=overwrite` writes that anew.

#[test]
fn the_compiler_says_how_an_agent_is_exported() {
    trybuild::TestCases::new().compile_fail("tests/export/*.rs");
}
