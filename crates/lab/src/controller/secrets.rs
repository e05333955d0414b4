//! A controller's certificate and the bearer tokens of its clients, generated for each instance of a lab.

use crate::error::{LabError, Result};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::net::Ipv6Addr;
use std::path::Path;

const TOKEN_OCTETS: usize = 32;

/// A certificate with its key, in PEM, and a token.
pub(crate) struct Secrets {
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) token: String,
}

impl Secrets {
    /// For a controller at this address. The certificate is self-signed: clients use it as their CA bundle.
    pub(crate) fn new(address: Ipv6Addr) -> Result<Self> {
        let unmade = |error: rcgen::Error| LabError::Unexpected {
            who: "the controller's certificate".to_owned(),
            problem: error.to_string(),
        };
        let mut params = CertificateParams::new(vec![address.to_string()]).map_err(unmade)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "srdma lab controller");
        let key = KeyPair::generate().map_err(unmade)?;
        let certificate = params.self_signed(&key).map_err(unmade)?.pem();
        Ok(Secrets { certificate, key: key.serialize_pem(), token: token()? })
    }

    /// The digest of the token that the controller stores.
    pub(crate) fn token_sha256(&self) -> String {
        hex::encode(Sha256::digest(&self.token))
    }
}

fn token() -> Result<String> {
    let chance = Path::new("/dev/urandom");
    let mut octets = [0; TOKEN_OCTETS];
    File::open(chance).and_then(|mut file| file.read_exact(&mut octets)).map_err(LabError::file("read", chance))?;
    Ok(hex::encode(octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lab_has_its_own_secrets() {
        let [one, other] = [(); 2].map(|()| Secrets::new("2001:db8::1".parse().unwrap()).unwrap());
        assert_eq!(one.token.len(), 2 * TOKEN_OCTETS);
        assert!(one.token != other.token && one.key != other.key && one.certificate != other.certificate);
        assert!(one.certificate.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(one.key.starts_with("-----BEGIN PRIVATE KEY-----"));
    }

    /// FIPS 180-4: the digest of "abc".
    #[test]
    fn the_digest_is_sha256() {
        let token = "abc".to_owned();
        let secrets = Secrets { certificate: String::new(), key: String::new(), token };
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(secrets.token_sha256(), expected);
    }
}
