//! A saved plan changes: flows are added and removed, switches are drained and released, few flows move, and the plan
//! explains why.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const FABRICS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fabrics");

/// A plan in a folder of its own.
struct Plan {
    folder: TempDir,
}

impl Plan {
    /// The shipped fabric and jobs of this name, placed and saved.
    fn of(name: &str) -> Self {
        let plan = Plan { folder: TempDir::new().unwrap() };
        let (fabric, jobs) = (format!("{FABRICS}/{name}.toml"), format!("{FABRICS}/{name}-jobs.toml"));
        let file = plan.file();
        let output = run(&["place", "--fabric", &fabric, "--jobs", &jobs, "--save", file.to_str().unwrap()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        plan
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("plan.json")
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.file()).unwrap()
    }

    fn write(&self, name: &str, text: &str) -> String {
        let file = self.folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// Runs `srdma plan VERB --plan FILE …`.
    fn run(&self, verb: &[&str], more: &[&str]) -> Output {
        let file = self.file();
        run(&[verb, &["--plan", file.to_str().unwrap()], more].concat())
    }

    fn json(&self, verb: &[&str], more: &[&str]) -> Value {
        let output = self.run(verb, &[more, &["--json"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The error text of a refusal, with exit code 2; the plan has not changed.
    fn refusal(&self, verb: &[&str], more: &[&str]) -> String {
        let before = self.text();
        let output = self.run(verb, more);
        assert_eq!((output.status.code(), output.stdout.len(), self.text()), (Some(2), 0, before));
        String::from_utf8(output.stderr).unwrap()
    }
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srdma")).arg("plan").args(arguments).output().unwrap()
}

fn numbers(flows: &Value) -> Vec<u64> {
    flows.as_array().unwrap().iter().map(|flow| flow["number"].as_u64().unwrap()).collect()
}

/// PP-4-1: without spine 5 the first flow takes the path of section 5.3 of the draft; the second does not move.
#[test]
fn a_drained_spine_moves_its_flow_alone() {
    let plan = Plan::of("figure1");
    let before = plan.text();
    let asked = plan.json(&["whatif", "drain"], &["spine5"]);
    assert_eq!((&asked["saved"], numbers(&asked["moved"])), (&json!(false), vec![0]));
    assert_eq!(plan.text(), before, "it was only a question");
    let drained = plan.json(&["drain"], &["spine5"]);
    assert_eq!(drained["saved"], true);
    for of in ["moved", "after", "bound"] {
        assert_eq!(drained[of], *asked.get(of).expect(of), "the change equals its preview");
    }
    let moved = &drained["moved"][0];
    assert_eq!(moved["was"], json!(["nic1", "leaf1", "spine5", "leaf3", "nic3"]));
    assert_eq!(moved["path"], json!(["nic1", "leaf1", "spine6", "leaf3", "nic3"]));
    assert_eq!(moved["program"]["destination"], "5f00:0:100:600:300::");
    assert_eq!(drained["after"]["load"], 1.0);
    // Spine 5 stays drained: no path through it is an alternative.
    let why = plan.json(&["why"], &["0"]);
    assert!(!why["alternatives"].to_string().contains("spine5"), "{why}");
    let released = plan.json(&["release"], &["spine5"]);
    assert_eq!(numbers(&released["moved"]), Vec::<u64>::new(), "nothing would be better");
    assert!(plan.json(&["why"], &["0"])["alternatives"].to_string().contains("spine5"));
}

#[test]
fn flows_are_added_and_removed_by_number_job_and_ends() {
    let plan = Plan::of("figure1");
    let csv = plan.write("more.csv", "from,to,bits_per_s,job,tenant\nnic4,nic1,1000000000,copy,7\nnic3,nic1,5,copy,\n");
    let added = plan.json(&["add"], &["--jobs", &csv]);
    assert_eq!((numbers(&added["added"]), &added["flows"]), (vec![2, 3], &json!(4)));
    assert_eq!(numbers(&added["moved"]), Vec::<u64>::new());
    let program = added["added"][0]["program"]["destination"].as_str().unwrap();
    assert!(program.ends_with(":f007::"), "tenant 7 at the end of {program}");
    let removed = plan.json(&["remove"], &["nic4:nic1", "1"]);
    assert_eq!((&removed["removed"], &removed["flows"]), (&json!([1, 2]), &json!(2)));
    // Numbers stay, and are not given again while higher ones are there.
    let again = plan.json(&["add"], &["--jobs", &csv]);
    assert_eq!(numbers(&again["added"]), [4, 5]);
    let asked = plan.json(&["whatif", "remove"], &["--job", "copy"]);
    assert_eq!((&asked["removed"], &asked["flows"]), (&json!([3, 4, 5]), &json!(1)));
    assert_eq!(plan.json(&["remove"], &["--job", "copy", "0"])["flows"], 0);
}

/// Of hundreds of flows, those move whose links are drained, and few others.
#[test]
fn few_flows_move_on_every_kind_of_fabric() {
    for (name, switch) in [("rail", "spine2"), ("dual-plane", "p1.spine1"), ("torus", "s23-s33"), ("mixed", "spine1")] {
        let plan = Plan::of(name);
        let saved: Value = serde_json::from_str(&plan.text()).unwrap();
        let flows = saved["flows"].as_array().unwrap();
        let is_user = |flow: &&Value| {
            let path = flow["path"].as_array().unwrap().iter().map(|link| link.as_str().unwrap());
            path.clone().any(|link| link == switch || link.split('-').any(|end| end == switch))
        };
        let users: Vec<u64> = flows.iter().filter(is_user).map(|flow| flow["number"].as_u64().unwrap()).collect();
        let drained = plan.json(&["drain"], &[switch]);
        let moved = numbers(&drained["moved"]);
        assert!(!users.is_empty() && users.iter().all(|user| moved.contains(user)), "{name}");
        assert!(moved.len() <= users.len() + flows.len() / 4, "{name}: {} of {} moved", moved.len(), flows.len());
        assert!(
            drained["after"]["load"].as_f64().expect("a load") >= drained["bound"].as_f64().expect("a bound"),
            "{name}"
        );
        let released = plan.json(&["release"], &[switch]);
        let load = |plan: &Value| plan["after"]["load"].as_f64().expect("a load");
        assert!(load(&released) <= load(&drained), "{name}");
    }
}

#[test]
fn the_text_output_explains_a_path() {
    let plan = Plan::of("figure1");
    let text = String::from_utf8(plan.run(&["why"], &["nic1:nic3"]).stdout).unwrap();
    let expected = "flow 0: nic1 to nic3, 100.00 Gbit/s, send-recv of job gpu1-gpu3
goes by leaf1 spine5 leaf3: 5f00:0:100:500:300::

link from  to       load  flows
nic1       leaf1   1.000  1
leaf1      spine5  1.000  1
spine5     leaf3   1.000  1
leaf3      nic3    1.000  1

3 other ways. None would carry less than the links that it uses.

by                  would load  link from  to
leaf1 spine6 leaf3       1.000  nic1       leaf1
leaf2 spine5 leaf4       2.000  leaf4      nic3
leaf2 spine6 leaf4       2.000  leaf2      spine6

most loaded   nic1 to leaf1: 1.000 of its rate
bound         1.000, 0.0 % below; made by the links of nic1, by its outgoing traffic
";
    assert_eq!(text, expected);
    let text = String::from_utf8(plan.run(&["whatif", "drain"], &["spine5"]).stdout).unwrap();
    let expected = "1 of 2 flows would move
most loaded   nic1 to leaf1: 1.000 of its rate; before: nic1 to leaf1: 1.000
bound         1.000

flow  from  to    was by              goes by             destination
   0  nic1  nic3  leaf1 spine5 leaf3  leaf1 spine6 leaf3  5f00:0:100:600:300::
";
    assert_eq!(text, expected);
}

/// A fabric that has grown since, with failures that it did not have.
#[test]
fn a_plan_belongs_to_its_fabric() {
    let plan = Plan::of("figure1");
    let fabric = std::fs::read_to_string(Path::new(FABRICS).join("figure1.toml")).unwrap();
    let failed = plan.write("now.toml", &format!("{fabric}\n[[failed]]\nname = \"spine6\"\n"));
    let csv = plan.write("more.csv", "from,to,bits_per_s\nnic4,nic1,1000000000\n");
    let added = plan.json(&["add"], &["--jobs", &csv, "--fabric", &failed]);
    assert_eq!(numbers(&added["moved"]), [1], "off the spine that has failed");
    assert_eq!(added["moved"][0]["path"], json!(["nic2", "leaf2", "spine5", "leaf4", "nic3"]));
    // The plan remembers the fabric that it was changed for.
    let refused = plan.refusal(&["release"], &["spine6"]);
    assert!(refused.contains("cannot release spine6: the fabric file marks leaf1-spine6 as failed"), "{refused}");
}

#[test]
fn refused_changes_change_nothing() {
    let plan = Plan::of("figure1");
    assert!(plan.refusal(&["drain"], &["nic3"]).contains("cannot drain nic3: nic3 would be cut off"));
    assert!(plan.refusal(&["drain"], &["spine5", "spine6"]).contains("nic3 would be cut off"));
    let unknown = plan.refusal(&["whatif", "drain"], &["spine7"]);
    assert!(unknown.contains("spine7: neither a switch nor a link of the fabric"), "{unknown}");
    assert!(plan.refusal(&["remove"], &["9"]).contains("flow 9: the plan has none of this number"));
    assert!(plan.refusal(&["remove"], &["nic1:nic2"]).contains("the plan has none from nic1 to nic2"));
    assert!(plan.refusal(&["remove"], &["nic1"]).contains("expected its number, or FROM:TO"));
    assert!(plan.refusal(&["remove"], &["--job", "x"]).contains("--job x: the plan has no flow of such a job"));
    assert!(plan.refusal(&["remove"], &[]).contains("required"));
    let csv = plan.write("bad.csv", "from,to,bits_per_s\nnic1,nic3,1\nnic1,nic9,1\n");
    let refused = plan.refusal(&["add"], &["--jobs", &csv]);
    assert!(refused.ends_with("bad.csv:3: column to: \"nic9\" is no NIC of this fabric\n"), "{refused}");
    let twice = plan.write("twice.csv", "from,to,bits_per_s\nnic1,nic3,1\n");
    plan.json(&["add"], &["--jobs", &twice]);
    assert!(plan.refusal(&["why"], &["nic1:nic3"]).contains("there are several, give the number of one: 0, 2"));
    let text = plan.text();
    plan.write("plan.json", &text.replace("\"format\": 1", "\"format\": 2"));
    assert!(plan.refusal(&["why"], &["0"]).contains("has format 2: expected 1"));
    plan.write("plan.json", &text.replace("nic1-leaf1", "nic1-leaf9"));
    let refused = plan.refusal(&["why"], &["0"]);
    assert!(refused.contains("flow 0: the plan names nic1-leaf9, which is no link of its fabric"), "{refused}");
    plan.write("plan.json", &text.replace("leaf1-spine5", "leaf1-spine6"));
    assert!(plan.refusal(&["why"], &["0"]).contains("the flow from nic1 to nic3 has no path"));
    plan.write("plan.json", "{");
    assert!(plan.refusal(&["why"], &["0"]).contains("is no plan"));
}

/// The report is one page that names what text names, and has both sets of loads.
#[test]
fn a_report_shows_placed_beside_ecmp() {
    let folder = TempDir::new().unwrap();
    for name in ["figure1", "failures", "torus", "data-centres"] {
        let file = folder.path().join(format!("{name}.html"));
        let (fabric, jobs) = (format!("{FABRICS}/{name}.toml"), format!("{FABRICS}/{name}-jobs.toml"));
        let output = run(&["place", "--fabric", &fabric, "--jobs", &jobs, "--report", file.to_str().unwrap()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let html = std::fs::read_to_string(file).unwrap();
        for part in ["Load, placed", "Load, ECMP", "placed, up", "ECMP, down", "<th scope=\"col\">backup</th>"] {
            assert!(html.contains(part), "{name}: {part}");
        }
        if name == "figure1" {
            assert!(html.contains("<td>5f00:0:100:500:300::</td><td>5f00:0:200:600:400::</td>"), "program and backup");
            // Row leaf1 has spine 5 at its rate and spine 6 free.
            let row = "<th scope=\"row\">leaf1</th><td style=\"--heat:100%\">1×</td><td style=\"--heat:0%\">0×</td>";
            assert!(html.contains(row), "{html}");
        }
    }
}
