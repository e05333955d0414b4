//! `dist/kubernetes`: the manifests follow the schemas that Kubernetes has published, name what is there, and start
//! programs as they want to be started. No cluster is needed.

use srdma_controller::Config;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use yaml_rust2::{Yaml, YamlLoader};

/// Versions of Kubernetes: the oldest for which the manifests are meant, and that of the schemas' package.
const VERSIONS: [&str; 2] = ["1.30", "1.37"];
/// As `cargo xtask ci` installs it.
const VALIDATOR: &str = "target/python/kubernetes-validate-1.37.0";
/// Placeholders of the controllers' files.
const DIGEST: &str = "SHA256-OF-THE-TOKEN-OF-";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("there")
}

fn place() -> PathBuf {
    repository().join("dist/kubernetes")
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path.as_ref()).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

fn kustomization() -> Yaml {
    let text = read(place().join("kustomization.yaml"));
    YamlLoader::load_from_str(&text).expect("YAML").remove(0)
}

fn text_of(yaml: &Yaml) -> &str {
    yaml.as_str().unwrap_or_else(|| panic!("no text: {yaml:?}"))
}

fn items(yaml: &Yaml) -> &[Yaml] {
    yaml.as_vec().map_or(&[], |items| items)
}

/// The files of the manifests.
fn files() -> Vec<PathBuf> {
    items(&kustomization()["resources"]).iter().map(|file| place().join(text_of(file))).collect()
}

/// All resources.
fn resources() -> Vec<Yaml> {
    files().iter().flat_map(|file| YamlLoader::load_from_str(&read(file)).expect("YAML")).collect()
}

/// Templates of pods, with the name of what has them.
fn pods(resources: &[Yaml]) -> impl Iterator<Item = (&str, &Yaml)> {
    let has_pods = |resource: &&Yaml| !resource["spec"]["template"].is_badvalue();
    resources
        .iter()
        .filter(has_pods)
        .map(|resource| (text_of(&resource["metadata"]["name"]), &resource["spec"]["template"]))
}

/// Checks files by the published schemas; what the validator says of each resource.
fn validate(version: &str, files: &[PathBuf]) -> Vec<String> {
    let validator = repository().join(VALIDATOR);
    assert!(validator.is_dir(), "{} is missing: cargo xtask ci installs it", validator.display());
    let mut command = Command::new("/usr/bin/python3");
    command.env("PYTHONPATH", validator).args(["-m", "kubernetes_validate", "--strict", "-k", version]).args(files);
    let output = command.output().expect("python runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.is_empty(), "{errors}");
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn manifests_follow_the_published_schemas() {
    let files = files();
    let expected = resources().len();
    for version in VERSIONS {
        let lines = validate(version, &files);
        let bad: Vec<&String> = lines.iter().filter(|line| !line.starts_with("INFO ")).collect();
        assert!(bad.is_empty(), "{bad:#?}");
        // A kind without a schema would be skipped.
        assert_eq!(lines.len(), expected, "{lines:#?}");
    }
}

#[test]
fn a_broken_manifest_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    for (file, from, to) in [
        ("node.yaml", "hostNetwork: true", "hostNetworking: true"),
        ("node.yaml", "defaultMode: 256", "defaultMode: \"0400\""),
        ("node.yaml", "drop: [\"ALL\"]", "drop: ALL"),
        ("node.yaml", "fieldPath: spec.nodeName", "field: spec.nodeName"),
        ("wpi.yaml", "supplementalGroups: [64010]", "supplementalGroups: 64010"),
        ("wpi.yaml", "apiVersion: apps/v1", "apiVersion: apps/v9"),
        ("etcd.yaml", "replicas: 3", "replicas: three"),
        ("etcd.yaml", "serviceName: srdma-etcd\n  replicas", "service: srdma-etcd\n  replicas"),
        ("etcd.yaml", "kind: PodDisruptionBudget", "kind: PodDisruption"),
        ("controller.yaml", "  selector:\n    matchLabels:\n      app: srdma-controller\n  template", "  template"),
    ] {
        let text = read(place().join(file));
        assert!(text.contains(from), "{file} has no {from:?}");
        let broken = directory.path().join(file);
        fs::write(&broken, text.replacen(from, to, 1)).expect("a file");
        let lines = validate(VERSIONS[1], &[broken]);
        assert!(lines.iter().any(|line| !line.starts_with("INFO ")), "{to:?} is not found: {lines:#?}");
    }
}

/// Every file is applied, and every file that is applied is there.
#[test]
fn the_kustomization_has_all_files() {
    let in_place = |directory: &Path, suffix: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(directory).expect("readable").map(|entry| entry.expect("an entry").file_name());
        let names = entries.map(|name| name.into_string().expect("UTF-8"));
        names.filter(|name| name.ends_with(suffix) && name != "kustomization.yaml").collect()
    };
    let kustomization = kustomization();
    let named = |yaml: &Yaml| -> BTreeSet<String> { items(yaml).iter().map(|item| text_of(item).to_owned()).collect() };
    assert_eq!(named(&kustomization["resources"]), in_place(&place(), ".yaml"));
    let generated = items(&kustomization["configMapGenerator"]).iter().flat_map(|map| named(&map["files"]));
    let configured = in_place(&place().join("config"), ".toml").into_iter().map(|name| format!("config/{name}"));
    assert_eq!(generated.collect::<BTreeSet<_>>(), configured.collect());
}

/// What pods mount is made by the kustomization, or by a command of the document; selectors find their pods.
#[test]
fn what_is_named_is_there() {
    let document = read(repository().join("docs/kubernetes.md"));
    let kustomization = kustomization();
    let generated: BTreeSet<&str> =
        items(&kustomization["configMapGenerator"]).iter().map(|map| text_of(&map["name"])).collect();
    let resources = resources();
    let accounts: BTreeSet<&str> = resources
        .iter()
        .filter(|resource| resource["kind"].as_str() == Some("ServiceAccount"))
        .map(|account| text_of(&account["metadata"]["name"]))
        .collect();
    let mut count = 0;
    for (name, pod) in pods(&resources) {
        assert!(accounts.contains(text_of(&pod["spec"]["serviceAccountName"])), "{name}");
        assert_eq!(pod["spec"]["automountServiceAccountToken"].as_bool(), Some(false), "{name}");
        assert_eq!(text_of(&pod["metadata"]["labels"]["app"]), name);
        let volumes = items(&pod["spec"]["volumes"]);
        for volume in volumes {
            let (secret, map) = (&volume["secret"]["secretName"], &volume["configMap"]["name"]);
            if let Some(secret) = secret.as_str() {
                let is_made = |kind| document.contains(&format!("create secret {kind} {secret} "));
                assert!(is_made("generic") || is_made("tls"), "no command of the document makes Secret {secret}");
                assert_eq!(volume["secret"]["defaultMode"].as_i64(), Some(0o400), "{secret}: its owner's alone (D108)");
                count += 1;
            }
            if let Some(map) = map.as_str().filter(|map| !generated.contains(map)) {
                assert!(document.contains(&format!("create configmap {map} ")), "nothing makes ConfigMap {map}");
                count += 1;
            }
        }
        let names: BTreeSet<&str> = volumes.iter().map(|volume| text_of(&volume["name"])).collect();
        for container in items(&pod["spec"]["containers"]) {
            for mount in items(&container["volumeMounts"]) {
                let volume = text_of(&mount["name"]);
                assert!(names.contains(volume) || (name, volume) == ("srdma-etcd", "data"), "{name} has no {volume}");
            }
            assert_eq!(text_of(&items(&container["securityContext"]["capabilities"]["drop"])[0]), "ALL", "{name}");
            assert_eq!(container["securityContext"]["readOnlyRootFilesystem"].as_bool(), Some(true), "{name}");
        }
    }
    assert_eq!(count, 5, "Secrets and ConfigMaps of the document");
    for resource in &resources {
        let name = text_of(&resource["metadata"]["name"]);
        let selectors = [&resource["spec"]["selector"]["matchLabels"]["app"], &resource["spec"]["selector"]["app"]];
        let selected = selectors.iter().find_map(|selector| selector.as_str());
        assert!(selected.is_none_or(|selected| selected == name), "{name} has the pods of {selected:?}");
        let is_global = text_of(&resource["kind"]) == "Namespace";
        assert!(is_global || resource["metadata"]["namespace"].as_str() == Some("srdma"), "{resource:?}");
    }
}

/// The program knows the arguments of its containers and probes, and has the capabilities of docs/running.md.
#[test]
fn containers_start_as_the_program_wants() {
    let resources = resources();
    let mut started = Vec::new();
    for (name, pod) in pods(&resources) {
        for container in
            items(&pod["spec"]["containers"]).iter().filter(|one| one["image"].as_str() == Some("srdma:0.1.0"))
        {
            // As the kubelet expands them; the values are of no account here.
            let expand = |text: &str| {
                let names = ["POD_NAME", "NODE_NAME", "HOST_IP"];
                names.iter().fold(text.to_owned(), |text, name| text.replace(&format!("$({name})"), "10.0.0.1"))
            };
            let arguments: Vec<String> =
                items(&container["args"]).iter().map(|argument| expand(text_of(argument))).collect();
            assert!(!arguments.iter().any(|argument| argument.contains("$(")), "{arguments:?}");
            let mut command = Command::new(env!("CARGO_BIN_EXE_srdma"));
            let output = command.args(&arguments).arg("--help").output().expect("it runs");
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            started.push(name.to_owned());
            let added = &container["securityContext"]["capabilities"]["add"];
            let added: BTreeSet<&str> = items(added).iter().map(text_of).collect();
            let is_node = name == "srdma-node";
            let needed: &[&str] = if is_node { &["BPF", "IPC_LOCK", "NET_ADMIN", "NET_RAW"] } else { &[] };
            assert_eq!(added, needed.iter().copied().collect(), "{name}");
            let running = read(repository().join("docs/running.md"));
            assert!(added.iter().all(|one| running.contains(&format!("| `CAP_{one}` |"))), "{added:?}");
        }
    }
    assert_eq!(started, ["srdma-controller", "srdma-node", "srdma-wpi"]);
    let dockerfile = read(repository().join("dist/container/Kubernetes.Dockerfile"));
    assert!(dockerfile.contains("ENTRYPOINT [\"/usr/bin/srdma\"]") && dockerfile.contains("COPY srdma.deb "));
}

/// The node's file is valid; those of the controllers are when each digest is one, and not before.
#[test]
fn configurations_are_valid_when_they_are_filled_in() {
    let config = place().join("config");
    let mut check = Command::new(env!("CARGO_BIN_EXE_srdma"));
    let output = check.args(["node", "check", "--config"]).arg(config.join("leaf1.toml")).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let directory = tempfile::tempdir().expect("a directory");
    let mut former = None;
    for number in [0, 1] {
        let name = format!("srdma-controller-{number}");
        let text = read(config.join(format!("{name}.toml")));
        let file = directory.path().join("controller.toml");
        fs::write(&file, &text).expect("a file");
        let error = Config::read(&file).expect_err("placeholders are no digests").to_string();
        assert!(error.contains("sha256"), "{error}");
        let mut filled = text.clone();
        for (index, token) in ["ops", "wpi", "leaf1"].iter().enumerate() {
            let digest = format!("{:064x}", index + 1);
            let placeholder = format!("{DIGEST}{token}");
            assert!(filled.contains(&placeholder), "{placeholder}");
            filled = filled.replace(&placeholder, &digest);
        }
        fs::write(&file, filled).expect("a file");
        if let Err(error) = Config::read(&file) {
            panic!("{error}");
        }
        assert!(text.contains(&format!("https://{name}.srdma-controller.srdma.svc:8470")));
        let common = text.replace(&name, "srdma-controller-N");
        assert_eq!(*former.get_or_insert(common.clone()), common, "the controllers differ by their name alone");
    }
}

/// The commands of the document that need no cluster: tokens and certificate with which a controller starts.
#[test]
fn a_controller_starts_with_what_the_document_makes() {
    let document = read(repository().join("docs/kubernetes.md"));
    let blocks = document.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let blocks: Vec<&str> = blocks.filter(|block| block.contains("openssl ")).collect();
    assert_eq!(blocks.len(), 2, "tokens and certificate");
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("dist/kubernetes/config");
    fs::create_dir_all(&config).expect("a directory");
    for number in [0, 1] {
        let name = format!("srdma-controller-{number}.toml");
        fs::copy(place().join("config").join(&name), config.join(&name)).expect("copied");
    }
    for block in blocks {
        let output = Command::new("bash").args(["-e", "-c", block]).current_dir(directory.path()).output();
        let output = output.expect("bash runs");
        assert!(output.status.success(), "{block}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let name = "srdma-controller-1.srdma-controller.srdma.svc";
    let mut verify = Command::new("openssl");
    verify.args(["verify", "-CAfile", "secrets/ca.pem", "-verify_hostname", name, "secrets/tls.crt"]);
    assert!(verify.current_dir(directory.path()).status().expect("openssl runs").success());
    let secrets = directory.path().join("secrets");
    let text = read(config.join("srdma-controller-0.toml"))
        .replace("[::]:8470", "[::1]:0")
        .replace("/etc/srdma/tls", secrets.to_str().expect("UTF-8"));
    let file = directory.path().join("controller.toml");
    fs::write(&file, text).expect("a file");
    let mut controller = Command::new(env!("CARGO_BIN_EXE_srdma"));
    controller.args(["controller", "run", "--config"]).arg(&file).arg("--store").arg(directory.path().join("store"));
    let mut controller = controller.stderr(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(controller.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    let found: Vec<String> = lines.take_while(|line| !line.contains("ready")).collect();
    let is_running = controller.try_wait().expect("a child").is_none();
    // It may have ended.
    let _ = controller.kill();
    let _ = controller.wait();
    assert!(is_running, "{found:#?}");
}
