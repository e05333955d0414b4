/** The messages of the controller's API, as in `crates/api`. Addresses are text. */

export interface Topology {
  unix_ms: number;
  version: number;
  nodes: TopologyNode[];
  links: TopologyLink[];
}

export interface TopologyNode {
  name: string;
  loopback: string;
  is_alive: boolean;
  is_drained: boolean;
  is_edge: boolean;
  drops: number;
  /** Only in recordings: a source or receiver, not a node. */
  is_host?: boolean;
}

export interface TopologyLink {
  ends: [string, string];
  octets_per_second: [number, number];
  mtu: number;
  groups: number;
}

export type GroupState = "open" | "creating" | "ready" | "changing" | "verifying" | "stopped" | "closing" | "closed";

export interface GroupSummary {
  id: number;
  name: string;
  tenant: string;
  state: GroupState;
  proxy: string;
  receivers: number;
  epoch: number;
  version: number;
}

export interface GroupPage {
  groups: GroupSummary[];
  next?: number;
  total: number;
}

export interface Region {
  base: number;
  length: number;
  rkey: number;
}

export interface Group extends GroupSummary {
  source: { address: string; qpn: number };
  designated_qpn: number;
  initial_psn: number;
  path_mtu: number;
  region?: Region;
  members: Receiver[];
  tree?: Tree;
  awaited: string[];
  failure?: string;
}

export interface NewGroup {
  name?: string;
  source: { address: string; qpn: number };
  proxy?: string;
  designated_qpn: number;
  initial_psn: number;
  path_mtu: number;
  region?: Region;
}

export interface NewReceiver {
  qpn: number;
  path_mtu: number;
  region?: { virtual_address: number; rkey: number };
}

export interface Receiver {
  address: string;
  qpn: number;
  state: "joining" | "member" | "unverified" | "leaving";
  joined_psn?: number;
}

export interface Tree {
  nodes: TreeNode[];
  links: number;
  links_of_unicast: number;
  explanation: string[];
  overhead?: Overhead;
}

export interface Overhead {
  lists_in_packets: boolean;
  octets: number;
  longest_packet_octets: number;
  link_mtu: number;
}

export interface TreeNode {
  name: string;
  loopback: string;
  sid: string;
  role: string;
  parent?: string;
  branches: Branch[];
}

export interface Branch {
  /** A receiver's address, or a child's loopback. */
  address: string;
  /** The PSN that it expects next. */
  expected_psn?: number;
  /** Packets sent to it that it has not acknowledged. */
  lag?: number;
  cnps: number;
  /** Packets sent again to it, by a node that repairs. */
  packets_resent?: number;
  /** More than 1 % of the packets of the last second were sent again to it. */
  is_repairing?: boolean;
}

export interface NodeStatus {
  ports: Port[];
  drops: Record<string, number>;
  programs: string[];
}

export interface Port {
  name: string;
  to?: string;
  is_up: boolean;
  received_octets: number;
  sent_octets: number;
}

export interface Node {
  name: string;
  loopback: string;
  is_alive: boolean;
  is_drained: boolean;
  is_removing?: boolean;
  /** What it has registered and is not confirmed. */
  unconfirmed?: NodeIdentity;
  /** The protocol of its session. */
  protocol?: number;
  end_mt?: string;
  replication?: string;
  hosts: string[];
  groups: number;
  status?: NodeStatus;
}

export interface NodeIdentity {
  loopback: string;
  end_mt?: string;
  replication?: string;
  hosts: string[];
}

/** Groups that nodes have and the controller's store does not. */
export interface ForeignGroup {
  store: string;
  group: number;
  proxy: string;
  epoch: number;
  nodes: string[];
  is_adoptable: boolean;
  is_removing?: boolean;
}

export interface ForeignGroups {
  store: string;
  groups: ForeignGroup[];
}

export interface NodePage {
  nodes: Node[];
  next?: string;
}

export interface Flow {
  job: string;
  collective: string;
  from: string;
  to: string;
  rate_bits_per_s: number;
  path: string[];
  program: string[];
}

export interface Job {
  name: string;
  tenant: string;
  flows: Flow[];
}

export interface JobPage {
  jobs: Job[];
  next?: string;
}

/** An event; `kind` determines the other members. */
export interface ControllerEvent {
  number: number;
  unix_ms: number;
  tenant?: string;
  kind: string;
  group?: number;
  epoch?: number;
  receiver?: string;
  node?: string;
  drained?: boolean;
  name?: string;
  job?: string;
  cause?: string;
  reason?: string;
  refusal?: string;
  missed?: number;
}

/** A refusal (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
}
