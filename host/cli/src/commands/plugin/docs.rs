//! `plugin docs`: prints the guide for authors of agents.

use super::new::Lang;
use crate::{Exit, Global, client::global::Format, ui::markdown};
use a2a_hub_authoring::{Language, guide};
use clap::Args;
use serde_json::json;

#[derive(Debug, Args)]
pub(crate) struct Docs {
    /// Programming language of the agent [default: the language of the project in this directory]
    #[arg(long, value_enum)]
    lang: Option<Lang>,
}

pub(super) fn docs(global: &Global, args: &Docs) -> anyhow::Result<Exit> {
    let language = match args.lang {
        Some(lang) => lang.into(),
        None => Language::detect(&std::path::absolute(".")?)?,
    };
    let guide = guide(language)?;
    if global.format == Format::Json {
        global.console().print_json(&json!({ "language": language.option(), "guide": guide }))?;
        return Ok(Exit::Done);
    }
    let page = match global.console().columns_for_markdown() {
        Some(columns) => markdown::render(&guide, columns),
        None => guide.into(),
    };
    global.console().page(&page, &a2a_hub_config::pager())?;
    Ok(Exit::Done)
}
