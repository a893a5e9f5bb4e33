import { addressScope, addressText, type PeerAddress } from "../base/address.ts";

/**
 * Where other devices find who listens at `at`: nowhere behind loopback, at every address of the machine (`addresses`)
 * behind a wildcard.
 */
export function networkUrls({ host, port }: PeerAddress, addresses: readonly string[]): string[] {
  const scope = addressScope(host);
  if (scope === "loopback") return [];
  const shown =
    scope === "unspecified" ? addresses.filter((at) => host === "::" || !at.includes(":")) : [host];
  return shown.map((address) => `http://${addressText({ host: address, port })}/`);
}
