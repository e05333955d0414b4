//! Reloading of what may change while a controller runs: tokens, certificate and key (D106).

use crate::access::Access;
use crate::config::Config;
use crate::http::{Fingerprint, acceptor};
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// TLS of new connections.
pub(crate) type TlsSender = watch::Sender<Option<TlsAcceptor>>;

/// Reads the configuration file of a running controller again.
pub(crate) struct Reloader {
    /// As it was read from the file.
    config: Config,
    access: Arc<Access>,
    tls: TlsSender,
    certificate: Option<Fingerprint>,
}

/// Changes between two configurations.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    /// Names of tokens.
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
    /// Keys whose new values need a restart.
    restart: Vec<&'static str>,
}

impl Reloader {
    /// For a controller that runs with this configuration and certificate.
    pub(crate) fn new(config: Config, access: Arc<Access>, tls: TlsSender, certificate: Option<Fingerprint>) -> Self {
        Reloader { config, access, tls, certificate }
    }

    /// Applies the file's tokens, certificate and key, or keeps the former ones; logs the changes or the reason.
    pub(crate) fn reload(&mut self) {
        let Some(file) = self.config.file.clone() else {
            tracing::info!("there is no configuration file: nothing is reloaded");
            return;
        };
        let before = self.certificate;
        match self.apply(&file) {
            Ok(changes) => {
                let names = |names: &[String]| names.join(", ");
                let is_replaced = self.certificate != before;
                tracing::info!(
                    tokens_added = names(&changes.added),
                    tokens_removed = names(&changes.removed),
                    tokens_changed = names(&changes.changed),
                    certificate = if is_replaced { "replaced" } else { "unchanged" },
                    "reloaded"
                );
                if !changes.restart.is_empty() {
                    let keys = changes.restart.join(", ");
                    tracing::warn!(keys, "the new values of these keys need a restart");
                }
            }
            Err(reason) => tracing::error!(reason, "rejected: the former tokens, certificate and key stay"),
        }
    }

    fn apply(&mut self, file: &Path) -> Result<Changes, String> {
        let read = Config::read(file).map_err(|error| error.to_string())?;
        let in_file = |reason: &dyn Display| format!("{}: {reason}", file.display());
        if read.tls.is_some() != self.config.tls.is_some() {
            return Err(in_file(&"[tls] was added or removed, which needs a restart"));
        }
        let changes = Changes::between(&self.config, &read);
        // The tenants and addresses in use decide which tokens are permitted.
        let config = Config { token: read.token, tls: read.tls, ..self.config.clone() };
        config.check().map_err(|reason| in_file(&reason))?;
        let tls = config.tls.as_ref().map(acceptor).transpose().map_err(|error| error.to_string())?;
        let (tls, certificate) = tls.unzip();
        self.tls.send_replace(tls);
        self.access.replace(&config);
        self.certificate = certificate;
        self.config = config;
        Ok(changes)
    }
}

impl Changes {
    fn between(before: &Config, after: &Config) -> Self {
        let mut changes = Changes::default();
        let find = |config: &Config, name: &str| config.token.iter().find(|token| token.name == name).cloned();
        for token in &before.token {
            match find(after, &token.name) {
                None => changes.removed.push(token.name.clone()),
                Some(new) if new != *token => changes.changed.push(token.name.clone()),
                Some(_) => {}
            }
        }
        let added = after.token.iter().filter(|token| find(before, &token.name).is_none());
        changes.added = added.map(|token| token.name.clone()).collect();
        changes.restart = Config::RESTART_KEYS
            .iter()
            .filter(|(_, value)| value(before) != value(after))
            .map(|(key, _)| *key)
            .collect();
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Token;
    use sha2::{Digest, Sha256};
    use srdma_controller_core::Role;

    fn token(name: &str, digit: &str) -> Token {
        Token { name: name.to_owned(), sha256: digit.repeat(64), role: Role::Read, tenant: None, node: None }
    }

    /// A file that cannot be applied changes nothing.
    #[test]
    fn the_former_tokens_stay_when_a_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("controller.toml");
        let text = |name: &str| {
            format!(
                "[[token]]\nname = \"{name}\"\nrole = \"read\"\nsha256 = \"{}\"\n",
                hex::encode(Sha256::digest(name))
            )
        };
        std::fs::write(&file, text("old")).unwrap();
        let config = Config::read(&file).unwrap();
        let access = Arc::new(Access::new(&config));
        let mut reloader = Reloader::new(config, Arc::clone(&access), TlsSender::new(None), None);
        let is_known = |name: &str| access.principal(Some(name)).is_ok();
        let withdrawals = access.withdrawals();
        for (wrong, reason) in [
            (text("new") + "role = 7\n", "controller.toml:5: "),
            (text("new") + "[tls]\ncertificate = \"a\"\nkey = \"b\"\n", "needs a restart"),
            (text("new").replace("read\"", "tenant\"\ntenant = \"new\""), "[[tenant]] new is not defined"),
        ] {
            std::fs::write(&file, wrong).unwrap();
            let refused = reloader.apply(&file).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
            assert!(is_known("old") && !is_known("new"));
        }
        std::fs::write(&file, text("new") + &text("old")).unwrap();
        assert_eq!(reloader.apply(&file).unwrap().added, ["new"]);
        assert!(is_known("old") && is_known("new") && !withdrawals.has_changed().unwrap());
        std::fs::write(&file, text("new")).unwrap();
        assert_eq!(reloader.apply(&file).unwrap().removed, ["old"]);
        assert!(!is_known("old") && is_known("new") && withdrawals.has_changed().unwrap());
    }

    #[test]
    fn changes_are_named() {
        let before = Config { token: vec![token("a", "1"), token("b", "2"), token("c", "3")], ..Config::default() };
        let token = vec![token("c", "3"), token("b", "9"), token("d", "4")];
        let after = Config { token, connections: 7, url: Some("http://a".to_owned()), ..Config::default() };
        let changes = Changes::between(&before, &after);
        assert_eq!((changes.added, changes.removed), (vec!["d".to_owned()], vec!["a".to_owned()]));
        assert_eq!((changes.changed, changes.restart), (vec!["b".to_owned()], vec!["url", "connections"]));
        assert_eq!(Changes::between(&before, &before), Changes::default());
    }
}
