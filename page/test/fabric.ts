/** Fabrics for the tests: three tiers, named and connected as a fat tree is. */

export interface FabricNode {
  name: string;
  loopback: string;
  isEdge: boolean;
  hasHosts: boolean;
  /** Hosts are below this prefix of 64 bits. */
  hosts: string;
}

export interface Fabric {
  nodes: FabricNode[];
  links: [string, string][];
}

/** `pods` pods of edges and aggregations, each aggregation connected to its own cores. */
export function fatTree(pods: number, edges: number, aggregations: number, coresPerAggregation: number): Fabric {
  const nodes: FabricNode[] = [];
  const links: [string, string][] = [];
  const add = (name: string, isEdge: boolean): string => {
    const number = (nodes.length + 1).toString(16);
    nodes.push({ name, loopback: `2001:db8:a::${number}`, isEdge, hasHosts: isEdge, hosts: `2001:db8:b:${number}::` });
    return name;
  };
  const cores = Array.from({ length: aggregations }, (_, plane) =>
    Array.from({ length: coresPerAggregation }, (_, core) => add(`core${plane + 1}.${core + 1}`, false)));
  for (let pod = 1; pod <= pods; pod += 1) {
    const above = cores.map((plane, at) => {
      const aggregation = add(`agg${pod}.${at + 1}`, false);
      plane.forEach((core) => links.push([aggregation, core]));
      return aggregation;
    });
    for (let at = 1; at <= edges; at += 1) {
      const edge = add(`edge${pod}.${at}`, true);
      above.forEach((aggregation) => links.push([aggregation, edge]));
    }
  }
  return { nodes, links: links.map(([a, b]): [string, string] => (a < b ? [a, b] : [b, a])) };
}

/** A node next to these, with hosts below it, that is no edge: the first hop of sources. */
export function addFirstHop(fabric: Fabric, name: string, next: string[]): void {
  const number = (fabric.nodes.length + 1).toString(16);
  const hosts = `2001:db8:b:${number}::`;
  fabric.nodes.push({ name, loopback: `2001:db8:a::${number}`, isEdge: false, hasHosts: true, hosts });
  fabric.links.push(...next.map((other): [string, string] => (name < other ? [name, other] : [other, name])));
}

/** An address of a host below an edge. */
export function host(fabric: Fabric, edge: string, number: number): string {
  return `${fabric.nodes.find(({ name }) => name === edge)?.hosts ?? "::"}${number.toString(16)}`;
}
