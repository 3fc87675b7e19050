//! Settings of fabric8, Spark's client library for Kubernetes, that choose an identity or what is trusted. Each is a
//! property of the JVM, such as `kubernetes.auth.token`, or the variable of that name, such as `KUBERNETES_AUTH_TOKEN`.
//! The property wins, and an empty value counts as none. Spark's own settings win over all of them.
//!
//! The names are those of `io.fabric8.kubernetes.client.Config` in Spark 4.3.0 and 3.5.9, which are the same.

use std::path::PathBuf;

use anyhow::bail;

use cloakroom_cluster::{Basic, ContentSource, Credentials, Given, Impersonation};
use cloakroom_core::text::SecretText;
use cloakroom_submit::plan::Submitter;

const TRUST_STORE: &str = "kubernetes.truststore.file";
const KEY_STORE: &str = "kubernetes.keystore.file";
/// The JVM's own property, which the library reads if the one above is not set.
const KEY_STORE_OF_JVM: &str = "javax.net.ssl.keyStore";

/// Settings that choose an identity or what is trusted, and are not followed, and what to set in their place.
const NOT_FOLLOWED: [(&str, &str); 2] = [
    (TRUST_STORE, "name the CA of the API server as PEM, with KUBERNETES_CERTS_CA_FILE"),
    (
        KEY_STORE,
        "name the client certificate and its key as PEM, with KUBERNETES_CERTS_CLIENT_FILE and \
         KUBERNETES_CERTS_CLIENT_KEY_FILE",
    ),
];

/// The choices of these settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fabric8 {
    /// Credentials, CA and impersonation.
    pub credentials: Credentials,
    /// The setting by which every certificate of the API server is accepted.
    pub trust_certificates: Option<String>,
    /// Whether the kubeconfig is left out.
    pub skips_kubeconfig: bool,
    /// Whether the mounted service account is left out.
    pub skips_service_account: bool,
    /// The file of the service account's token, in place of the mounted one.
    pub account_token: Option<Given<PathBuf>>,
    /// A setting that asks for something unsafe, which is not done. Users of clusters with IPv6 are told to set it.
    pub warning: Option<String>,
}

impl Fabric8 {
    /// Reads and checks the settings. Opens no file.
    pub fn read(submitter: &Submitter) -> anyhow::Result<Self> {
        let settings = Settings(submitter);
        settings.refuse_what_is_not_followed()?;
        let trust = settings.switch("kubernetes.trust.certificates")?;
        Ok(Self {
            credentials: settings.credentials()?,
            trust_certificates: trust.filter(|given| given.value).map(|given| given.setting),
            skips_kubeconfig: settings.is_off("kubernetes.auth.tryKubeConfig")?,
            skips_service_account: settings.is_off("kubernetes.auth.tryServiceAccount")?,
            account_token: settings.path("kubernetes.auth.serviceAccount.token"),
            warning: settings.warning()?,
        })
    }

    /// Returns the credentials if Spark's own settings give `spark`, which win. Two kinds of credentials are refused,
    /// because Spark's client would send both, or the one that is not meant.
    pub fn overridden(&self, spark: Credentials) -> anyhow::Result<Credentials> {
        let Credentials { ca_cert, impersonation, .. } = self.credentials.clone();
        for (kind, setting) in kinds(&spark) {
            if let Some((_, other)) = kinds(&self.credentials).find(|(other, _)| *other != kind) {
                bail!(two_identities(other, setting));
            }
        }
        let ca_cert = spark.ca_cert.clone().or(ca_cert);
        let identity = if spark.identify() { spark } else { self.credentials.clone() };
        Ok(Credentials { ca_cert, impersonation, ..identity })
    }

    /// A setting that says who asks, if there is one.
    pub fn identity_setting(&self) -> Option<&str> {
        let impersonation = self.credentials.impersonation.as_ref().map(|given| given.setting.as_str());
        kinds(&self.credentials).map(|(_, setting)| setting).next().or(impersonation)
    }
}

/// The kinds of credentials that are given, each with its setting.
fn kinds(credentials: &Credentials) -> impl Iterator<Item = (&'static str, &str)> {
    let Credentials { token, basic, client_cert, .. } = credentials;
    let of_token = token.as_ref().map(|given| ("token", given.setting.as_str()));
    let of_basic = basic.as_ref().map(|given| ("password", given.setting.as_str()));
    let of_certificate =
        client_cert.as_ref().map(|(certificate, _)| ("certificate", certificate.setting.as_str()));
    [of_token, of_basic, of_certificate].into_iter().flatten()
}

fn two_identities(one: &str, other: &str) -> String {
    format!("{one} and {other} are both set, and only one of them can say who submits: remove one")
}

/// The properties and the variables of the submitting machine.
struct Settings<'a>(&'a Submitter);

impl<'a> Settings<'a> {
    /// The value of a property or else of its variable, with the one that gives it.
    fn get(&self, property: &str) -> Option<Given<&'a str>> {
        let variable = property.to_uppercase().replace(['.', '-'], "_");
        self.of_jvm(property).or_else(|| given(self.0.variables.get(&variable), variable.clone()))
    }

    fn of_jvm(&self, property: &str) -> Option<Given<&'a str>> {
        given(self.0.system.get(property), format!("-D{property}"))
    }

    fn refuse_what_is_not_followed(&self) -> anyhow::Result<()> {
        for (property, instead) in NOT_FOLLOWED {
            let of_jvm = (property == KEY_STORE).then(|| self.of_jvm(KEY_STORE_OF_JVM)).flatten();
            if let Some(Given { setting, .. }) = self.get(property).or(of_jvm) {
                bail!("{setting} is not followed, because Java's key stores are not read: {instead}");
            }
        }
        Ok(())
    }

    fn warning(&self) -> anyhow::Result<Option<String>> {
        let asked = self.switch("kubernetes.disable.hostname.verification")?.filter(|given| given.value);
        Ok(asked.map(|Given { setting, .. }| {
            format!(
                "{setting} is not followed, because the credentials could go to another server in the API server's place: the \
                 API server's certificate must have the name or address by which it is reached"
            )
        }))
    }

    fn switch(&self, property: &str) -> anyhow::Result<Option<Given<bool>>> {
        let Some(Given { value, setting }) = self.get(property) else { return Ok(None) };
        match value.to_ascii_lowercase().as_str() {
            "true" => Ok(Some(Given::new(true, setting))),
            "false" => Ok(Some(Given::new(false, setting))),
            _ => bail!("{setting} is neither true nor false"),
        }
    }

    /// Whether a switch that is on by default was turned off.
    fn is_off(&self, property: &str) -> anyhow::Result<bool> {
        Ok(self.switch(property)?.is_some_and(|given| !given.value))
    }

    fn path(&self, property: &str) -> Option<Given<PathBuf>> {
        let Given { value, setting } = self.get(property)?;
        Some(Given::new(self.0.working_folder.join(value), setting))
    }

    fn secret(&self, property: &str) -> Option<Given<SecretText>> {
        let Given { value, setting } = self.get(property)?;
        Some(Given::new(SecretText::new(value), setting))
    }

    fn credentials(&self) -> anyhow::Result<Credentials> {
        let token = self.secret("kubernetes.auth.token");
        let token = token.map(|given| Given::new(ContentSource::Inline(given.value), given.setting));
        let basic = self.basic()?;
        if let (Some(token), Some(basic)) = (&token, &basic) {
            bail!(two_identities(&basic.setting, &token.setting));
        }
        let certificate = self.content("kubernetes.certs.client")?;
        let key = self.content("kubernetes.certs.client.key")?;
        Ok(Credentials {
            token,
            basic,
            ca_cert: self.content("kubernetes.certs.ca")?,
            client_cert: both(
                certificate,
                key,
                ("KUBERNETES_CERTS_CLIENT_FILE", "KUBERNETES_CERTS_CLIENT_KEY_FILE"),
            )?,
            impersonation: self.impersonation()?,
        })
    }

    fn basic(&self) -> anyhow::Result<Option<Given<Basic>>> {
        let user = self.get("kubernetes.auth.basic.username");
        let password = self.secret("kubernetes.auth.basic.password");
        let names = ("KUBERNETES_AUTH_BASIC_USERNAME", "KUBERNETES_AUTH_BASIC_PASSWORD");
        Ok(both(user, password, names)?.map(|(user, password)| {
            let basic = Basic { user: user.value.to_owned(), password: password.value };
            Given::new(basic, password.setting)
        }))
    }

    /// A certificate or key: the property with `.data` has it, or the one with `.file` names its file.
    fn content(&self, property: &str) -> anyhow::Result<Option<Given<ContentSource>>> {
        let data = self.secret(&format!("{property}.data"));
        let data = data.map(|given| Given::new(ContentSource::Inline(given.value), given.setting));
        let file = self.path(&format!("{property}.file"));
        let file = file.map(|given| Given::new(ContentSource::File(given.value), given.setting));
        if let (Some(data), Some(file)) = (&data, &file) {
            bail!("{} and {} are both set: remove one of them", data.setting, file.setting);
        }
        Ok(data.or(file))
    }

    fn impersonation(&self) -> anyhow::Result<Option<Given<Impersonation>>> {
        let groups = self.get("kubernetes.impersonate.group");
        let Some(Given { value: user, setting }) = self.get("kubernetes.impersonate.username") else {
            return match groups {
                Some(groups) => bail!("{} is set without KUBERNETES_IMPERSONATE_USERNAME", groups.setting),
                None => Ok(None),
            };
        };
        // An API server takes an empty name for no impersonation at all.
        check_name(user, &setting)?;
        let mut names = Vec::new();
        if let Some(Given { value, setting }) = groups {
            for name in value.split(',').filter(|name| !name.is_empty()) {
                check_name(name, &setting)?;
                names.push(name.to_owned());
            }
        }
        Ok(Some(Given::new(Impersonation { user: user.to_owned(), groups: names }, setting)))
    }
}

/// Refuses a name that a header cannot carry, or that is blank.
fn check_name(name: &str, setting: &str) -> anyhow::Result<()> {
    if name.trim().is_empty() {
        bail!("{setting} has a blank name");
    }
    if name.chars().any(char::is_control) {
        bail!("{setting} has a control character, which no name has");
    }
    Ok(())
}

fn given(value: Option<&String>, setting: String) -> Option<Given<&str>> {
    value.filter(|value| !value.is_empty()).map(|value| Given::new(value.as_str(), setting))
}

/// Two settings that are set together or not at all. `names` are their variables.
fn both<A, B>(
    one: Option<Given<A>>,
    other: Option<Given<B>>,
    names: (&str, &str),
) -> anyhow::Result<Option<(Given<A>, Given<B>)>> {
    match (one, other) {
        (Some(one), Some(other)) => Ok(Some((one, other))),
        (None, None) => Ok(None),
        (Some(one), None) => bail!("{} is set, and {} is not: set both or neither", one.setting, names.1),
        (None, Some(other)) => bail!("{} is set, and {} is not: set both or neither", other.setting, names.0),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Settings by their names: those with a small first letter are properties, the others variables.
    fn submitter(settings: &[(&str, &str)]) -> Submitter {
        let all = settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let (system, variables): (BTreeMap<_, _>, _) =
            all.partition(|(name, _)| name.starts_with(char::is_lowercase));
        Submitter { variables, system, user: Ok(String::new()), working_folder: PathBuf::from("/home/ann") }
    }

    fn read(settings: &[(&str, &str)]) -> Fabric8 {
        Fabric8::read(&submitter(settings)).unwrap()
    }

    fn refusal(settings: &[(&str, &str)]) -> String {
        Fabric8::read(&submitter(settings)).unwrap_err().to_string()
    }

    fn inline(text: &str, setting: &str) -> Given<ContentSource> {
        Given::new(ContentSource::Inline(SecretText::new(text)), setting)
    }

    fn file(path: &str, setting: &str) -> Given<ContentSource> {
        Given::new(ContentSource::File(PathBuf::from(path)), setting)
    }

    #[test]
    fn a_property_wins_over_its_variable_and_an_empty_value_is_none() {
        let variable = ("KUBERNETES_AUTH_TOKEN", "of-variable");
        assert_eq!(read(&[variable]).credentials.token, Some(inline("of-variable", "KUBERNETES_AUTH_TOKEN")));
        let property = ("kubernetes.auth.token", "of-property");
        let both = read(&[variable, property]);
        assert_eq!(both.credentials.token, Some(inline("of-property", "-Dkubernetes.auth.token")));
        assert_eq!(read(&[variable, ("kubernetes.auth.token", "")]), read(&[variable]));
        assert_eq!(
            read(&[("KUBERNETES_AUTH_TOKEN", ""), ("KUBERNETES_TRUST_CERTIFICATES", "")]),
            Fabric8::default()
        );
    }

    #[test]
    fn every_choice_is_read() {
        let all = read(&[
            ("KUBERNETES_CERTS_CLIENT_FILE", "c.pem"),
            ("KUBERNETES_CERTS_CLIENT_KEY_DATA", "a2V5"),
            ("KUBERNETES_CERTS_CA_FILE", "/ca.pem"),
            ("KUBERNETES_AUTH_BASIC_USERNAME", "me"),
            ("KUBERNETES_AUTH_BASIC_PASSWORD", "pass"),
            ("KUBERNETES_IMPERSONATE_USERNAME", "other"),
            ("KUBERNETES_IMPERSONATE_GROUP", "g,h"),
            ("KUBERNETES_TRUST_CERTIFICATES", "TRUE"),
            ("KUBERNETES_AUTH_TRYKUBECONFIG", "false"),
            ("KUBERNETES_AUTH_TRYSERVICEACCOUNT", "False"),
            ("KUBERNETES_AUTH_SERVICEACCOUNT_TOKEN", "t"),
        ]);
        let basic = Basic { user: "me".to_owned(), password: SecretText::new("pass") };
        let impersonation =
            Impersonation { user: "other".to_owned(), groups: vec!["g".to_owned(), "h".to_owned()] };
        let key = inline("a2V5", "KUBERNETES_CERTS_CLIENT_KEY_DATA");
        let credentials = Credentials {
            token: None,
            basic: Some(Given::new(basic, "KUBERNETES_AUTH_BASIC_PASSWORD")),
            ca_cert: Some(file("/ca.pem", "KUBERNETES_CERTS_CA_FILE")),
            client_cert: Some((file("/home/ann/c.pem", "KUBERNETES_CERTS_CLIENT_FILE"), key)),
            impersonation: Some(Given::new(impersonation, "KUBERNETES_IMPERSONATE_USERNAME")),
        };
        assert_eq!(all.identity_setting(), Some("KUBERNETES_AUTH_BASIC_PASSWORD"));
        let expected = Fabric8 {
            credentials,
            trust_certificates: Some("KUBERNETES_TRUST_CERTIFICATES".to_owned()),
            skips_kubeconfig: true,
            skips_service_account: true,
            account_token: Some(Given::new(
                PathBuf::from("/home/ann/t"),
                "KUBERNETES_AUTH_SERVICEACCOUNT_TOKEN",
            )),
            warning: None,
        };
        assert_eq!(all, expected);
        assert!(!format!("{all:?}").contains("pass\"") && !format!("{all:?}").contains("a2V5"));
    }

    #[test]
    fn sparks_own_settings_win_and_the_impersonation_stays() {
        let fabric8 = read(&[
            ("KUBERNETES_AUTH_TOKEN", "of-variable"),
            ("KUBERNETES_CERTS_CA_FILE", "/ca.pem"),
            ("KUBERNETES_IMPERSONATE_USERNAME", "other"),
        ]);
        assert_eq!(fabric8.overridden(Credentials::default()).unwrap(), fabric8.credentials);
        let spark = Credentials {
            token: Some(inline("of-setting", "`oauthToken`")),
            ca_cert: Some(file("/other.pem", "`caCertFile`")),
            ..Credentials::default()
        };
        let won = fabric8.overridden(spark.clone()).unwrap();
        assert_eq!(won, Credentials { impersonation: fabric8.credentials.impersonation.clone(), ..spark });
    }

    #[test]
    fn a_password_and_a_token_are_refused_together() {
        let basic = [("KUBERNETES_AUTH_BASIC_USERNAME", "me"), ("KUBERNETES_AUTH_BASIC_PASSWORD", "pass")];
        let of_variable = refusal(&[basic[0], basic[1], ("KUBERNETES_AUTH_TOKEN", "t")]);
        assert!(
            of_variable.starts_with("KUBERNETES_AUTH_BASIC_PASSWORD and KUBERNETES_AUTH_TOKEN are both set")
        );
        let spark = Credentials { token: Some(inline("t", "`oauthToken`")), ..Credentials::default() };
        let of_spark = read(&basic).overridden(spark).unwrap_err().to_string();
        assert!(
            of_spark.starts_with("KUBERNETES_AUTH_BASIC_PASSWORD and `oauthToken` are both set"),
            "{of_spark}"
        );
    }

    #[test]
    fn two_kinds_of_credentials_are_refused_and_sparks_win_within_one_kind() {
        let of_variable =
            read(&[("KUBERNETES_CERTS_CLIENT_FILE", "/c"), ("KUBERNETES_CERTS_CLIENT_KEY_FILE", "/k")]);
        let token = Credentials { token: Some(inline("t", "`oauthToken`")), ..Credentials::default() };
        let said = of_variable.overridden(token.clone()).unwrap_err().to_string();
        assert!(said.starts_with("KUBERNETES_CERTS_CLIENT_FILE and `oauthToken` are both set"), "{said}");
        let pair = (file("/s", "`clientCertFile`"), file("/t", "`clientKeyFile`"));
        let certificate = Credentials { client_cert: Some(pair), ..Credentials::default() };
        assert_eq!(of_variable.overridden(certificate.clone()).unwrap(), certificate);
        assert_eq!(read(&[("KUBERNETES_AUTH_TOKEN", "v")]).overridden(token.clone()).unwrap(), token);
    }

    #[test]
    fn names_that_say_nobody_are_refused_or_left_out() {
        for (user, groups, named) in [
            (" ", "g", "KUBERNETES_IMPERSONATE_USERNAME has a blank name"),
            ("a\nb", "g", "KUBERNETES_IMPERSONATE_USERNAME has a control character"),
            ("a", "g, ", "KUBERNETES_IMPERSONATE_GROUP has a blank name"),
        ] {
            let said = refusal(&[
                ("KUBERNETES_IMPERSONATE_USERNAME", user),
                ("KUBERNETES_IMPERSONATE_GROUP", groups),
            ]);
            assert!(said.starts_with(named), "{said}");
        }
        for (groups, expected) in [("g,h,", &["g", "h"][..]), (",", &[])] {
            let read =
                read(&[("KUBERNETES_IMPERSONATE_USERNAME", "a"), ("KUBERNETES_IMPERSONATE_GROUP", groups)]);
            assert_eq!(read.credentials.impersonation.unwrap().value.groups, expected);
        }
    }

    #[test]
    fn names_are_verified_whatever_is_asked_for() {
        const SETTING: &str = "KUBERNETES_DISABLE_HOSTNAME_VERIFICATION";
        let warning = read(&[(SETTING, "true")]).warning.unwrap();
        assert!(warning.starts_with(&format!("{SETTING} is not followed")), "{warning}");
        assert_eq!(read(&[(SETTING, "false")]), Fabric8::default());
    }

    #[test]
    fn what_is_not_followed_is_refused_by_name() {
        for (setting, named) in [
            (("KUBERNETES_TRUSTSTORE_FILE", "/t.jks"), "KUBERNETES_TRUSTSTORE_FILE is not followed"),
            (("kubernetes.keystore.file", "/k.jks"), "-Dkubernetes.keystore.file is not followed"),
            (("javax.net.ssl.keyStore", "/k.p12"), "-Djavax.net.ssl.keyStore is not followed"),
            (
                ("KUBERNETES_AUTH_TRYKUBECONFIG", "no"),
                "KUBERNETES_AUTH_TRYKUBECONFIG is neither true nor false",
            ),
            (("KUBERNETES_AUTH_BASIC_USERNAME", "me"), "KUBERNETES_AUTH_BASIC_PASSWORD is not"),
            (("KUBERNETES_CERTS_CLIENT_KEY_FILE", "/k"), "KUBERNETES_CERTS_CLIENT_FILE is not"),
            (("KUBERNETES_IMPERSONATE_GROUP", "g"), "is set without KUBERNETES_IMPERSONATE_USERNAME"),
        ] {
            let said = refusal(&[setting]);
            assert!(said.contains(named), "{said}");
        }
        let twice = refusal(&[("KUBERNETES_CERTS_CA_FILE", "/a"), ("kubernetes.certs.ca.data", "b")]);
        assert!(
            twice.contains("-Dkubernetes.certs.ca.data and KUBERNETES_CERTS_CA_FILE are both set"),
            "{twice}"
        );
    }
}
