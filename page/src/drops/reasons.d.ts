/** Made from docs/drops.md by vite.config.ts. */
declare module "virtual:drop-reasons" {
  const reasons: Record<string, import("./document.ts").Explanation>;
  export default reasons;
}
