//! Settings of the search for agents.

use crate::{
    data_dir::secret_name::{SECRET_NAME_RULE, is_secret_name},
    error::ConfigError,
};
use serde::{Deserialize, Serialize};

/// `[finding]`: search for agents by their work.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Finding {
    /// `[finding.embeddings]`: search by meaning in addition to words.
    pub embeddings: Embeddings,
}

/// Server of text embeddings with OpenAI's API, which many servers offer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Embeddings {
    /// URL of the server without `/embeddings`, such as `http://localhost:11434/v1`. Without it,
    /// only words are compared.
    pub url: Option<String>,
    /// Name of the embedding model.
    pub model: Option<String>,
    /// Name of the secret that is sent as a bearer token: a file in `secrets/` of the data
    /// directory, or a variable of the hub's environment.
    pub key: Option<String>,
}

impl Embeddings {
    /// URL for requests, and the model; `None` without a server.
    pub fn server(&self) -> Option<(String, &str)> {
        let (url, model) = (self.url.as_ref()?.trim_end_matches('/'), self.model.as_ref()?);
        let url = url.strip_suffix("/embeddings").unwrap_or(url);
        Some((format!("{url}/embeddings"), model))
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let Self { url, model, key } = self;
        let wrong = |name, why| Err(ConfigError::Embeddings { name, why });
        match (url, model) {
            (Some(_), None) => return wrong("model", "say which model the server at `url` has"),
            (None, Some(_)) => return wrong("url", "say where the server is that has the model"),
            (Some(_), Some(_)) | (None, None) => {}
        }
        match key {
            Some(name) if !is_secret_name(name) => wrong("key", SECRET_NAME_RULE),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    #[test]
    fn embeddings_settings_are_validated() {
        let read = |text: &str| {
            let config: Config = toml::from_str(&format!("[finding.embeddings]\n{text}")).unwrap();
            config.check().map(|()| config.finding.embeddings).map_err(|why| why.to_string())
        };
        assert_eq!(read("").unwrap().server(), None);
        for url in
            ["http://localhost:1/v1", "http://localhost:1/v1/", "http://localhost:1/v1/embeddings"]
        {
            let server = read(&format!("url = '{url}'\nmodel = 'm'\nkey = 'A_KEY'")).unwrap();
            assert_eq!(server.server(), Some(("http://localhost:1/v1/embeddings".to_owned(), "m")));
        }
        insta::assert_snapshot!(
            [
                "url = 'http://x'",
                "model = 'm'",
                "url = 'x'\nmodel = 'm'",
                "key = '../token'",
            ].map(|text| read(text).unwrap_err()).join("\n"),
            @r"
        set `finding.embeddings.model`: say which model the server at `url` has
        set `finding.embeddings.url`: say where the server is that has the model
        set `finding.embeddings.url` to `x`: it must be an absolute URL that begins with http:// or https://
        set `finding.embeddings.key`: name a secret by letters, digits, `_` and `-`, and do not write it here
        "
        );
    }
}
