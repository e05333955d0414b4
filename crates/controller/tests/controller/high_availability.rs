//! Two controllers over one etcd, as processes: the standby becomes leader when the leader ends.

use crate::in_etcd::again;
use crate::in_etcd::server::{Server, free_port};
use crate::running::{config, create, join, receiver_address, show, until};
use srdma_api::{Client, GroupPage};
use srdma_controller::{Config, EtcdTrust, ServeError, Standby, StateStore, StoreError, run};
use std::collections::BTreeSet;
use std::process::{Child, Command};
use std::sync::mpsc::channel;
use std::time::Instant;

/// Port of a controller, and servers of its etcd.
const CONTROLLER: &str = "SRDMA_TEST_CONTROLLER";

/// A controller, which the tests below start and kill.
fn control(port_and_servers: &str) {
    let (port, servers) = port_and_servers.split_once(' ').unwrap();
    let config = Config { listen: vec![format!("127.0.0.1:{port}").parse().unwrap()], ..config() };
    let standby = Standby::new(servers, &config.url(), &EtcdTrust::default()).unwrap();
    match run(config, StateStore::Shared(standby), None, || std::process::exit(1), &mut |_| ()) {
        Ok(()) | Err(ServeError::Store(StoreError::Deposed)) => {}
        Err(error) => panic!("{error}"),
    }
}

/// A controller in a process of its own.
struct Controller {
    port: u16,
    child: Child,
}

impl Controller {
    fn start(server: &Server, port: u16) -> Self {
        let child = again(
            "high_availability::a_standby_has_all_answered_writes_of_a_killed_leader",
            CONTROLLER,
            &format!("{port} {}", server.url()),
        );
        Controller { port, child }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn client(&self) -> Client {
        Client::new(&self.url(), None, None).unwrap()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn leads(&self) -> bool {
        self.client().get::<GroupPage>("/v1/groups").is_ok()
    }

    /// The detail of its refusal as a standby.
    fn refusal(&self) -> Option<String> {
        let error = self.client().get::<GroupPage>("/v1/groups").err()?;
        let problem = error.problem()?;
        assert_eq!((problem.name(), problem.status), ("not-leader", 503));
        Some(problem.detail.clone())
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The numbers of all groups, page by page.
fn groups(client: &Client) -> BTreeSet<u32> {
    let mut groups = BTreeSet::new();
    let mut path = "/v1/groups".to_owned();
    loop {
        let page: GroupPage = client.get(&path).unwrap().value;
        groups.extend(page.groups.iter().map(|group| group.id));
        match page.next {
            Some(next) => path = format!("/v1/groups?after={next}"),
            None => return groups,
        }
    }
}

/// Killed while it writes: the standby has all answered writes, and at most one that was not answered.
#[test]
fn a_standby_has_all_answered_writes_of_a_killed_leader() {
    if let Ok(port_and_servers) = std::env::var(CONTROLLER) {
        return control(&port_and_servers);
    }
    let server = Server::start();
    let mut first = Controller::start(&server, free_port());
    until("the first leads", || first.leads().then_some(()));
    let second = Controller::start(&server, free_port());
    let named = format!("the controller at {} is the leader: use that one", first.url());
    until("the second names the leader", || second.refusal().filter(|refusal| *refusal == named));
    // A client with both URLs uses the leader, now and later.
    let both = format!("{},{}", second.url(), first.url());
    let both = Client::new(&both, None, None).unwrap();
    let client = first.client();
    let group = create(&both, 1).summary.id;
    assert_eq!(both.url(), first.url());
    (1..=3).for_each(|number| join(&client, group, number));
    let (tell, created) = channel();
    let writes = std::thread::spawn(move || {
        let mut answered = Vec::new();
        for number in 2_u16.. {
            match client.post::<srdma_api::Group>("/v1/groups", &crate::running::new_group(number), None) {
                Ok(reply) => {
                    answered.push(reply.value.summary.id);
                    // The test listens to the first ones only.
                    let _ = tell.send(());
                }
                Err(_) => break,
            }
        }
        answered
    });
    assert_eq!(created.iter().take(20).count(), 20);
    first.kill();
    let killed = Instant::now();
    let answered = writes.join().unwrap();
    until("the second leads", || second.leads().then_some(()));
    println!("{} groups were created, the second answers {:?} later", answered.len(), killed.elapsed());
    let client = second.client();
    let found = groups(&both);
    assert_eq!(both.url(), second.url());
    let lost: Vec<&u32> = answered.iter().filter(|id| !found.contains(id)).collect();
    assert!(answered.len() > 10 && lost.is_empty(), "{lost:?} of {}", answered.len());
    assert!(found.len() <= answered.len() + 2, "{} for {}", found.len(), answered.len());
    for number in 1..=3 {
        let path = format!("/v1/groups/{group}/receivers/{}", receiver_address(number));
        assert!(
            client.get::<srdma_api::Receiver>(&path).is_ok(),
            "receiver {number} of {}",
            show(&client, group).summary.receivers
        );
    }
    // The killed controller restarts, as a standby.
    let again = Controller::start(&server, first.port);
    let named = format!("the controller at {} is the leader: use that one", second.url());
    until("the first names the leader", || again.refusal().filter(|refusal| *refusal == named));
    join(&both, group, 4);
    let number = u16::try_from(found.len() + 10).unwrap();
    let client = Client::new(&format!("{},{}", again.url(), second.url()), None, None).unwrap();
    let last = create(&client, number).summary.id;
    assert!(found.iter().all(|id| *id < last));
}

#[test]
fn a_terminated_leader_hands_over_at_once() {
    let server = Server::start();
    let mut first = Controller::start(&server, free_port());
    until("the first leads", || first.leads().then_some(()));
    let second = Controller::start(&server, free_port());
    until("the second waits", || second.refusal().filter(|refusal| refusal.contains(&first.url())));
    let group = create(&first.client(), 1).summary.id;
    let ended = Instant::now();
    let status = Command::new("kill").args(["-TERM", &first.child.id().to_string()]).status().unwrap();
    assert!(status.success() && first.child.wait().unwrap().success());
    // Without revocation the lease would keep the key for seconds.
    assert_ne!(server.leader(), Some(first.url()));
    until("the second leads", || second.leads().then_some(()));
    println!("the second answers {:?} later", ended.elapsed());
    assert_eq!(groups(&second.client()), BTreeSet::from([group]));
}
