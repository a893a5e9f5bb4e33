/**
 * Returns the value of the header `contentFeatures.dlna.org` (DLNA guidelines 7.4.1.3.16). A file supports byte ranges (`OP=01`); a live
 * stream has none, and its sender sets the pace.
 */
export function contentFeatures(isLive: boolean): string {
  // Streaming and background transfer and connection stalling; for live streams sender-paced as well. DLNA 1.5.
  const flags = isLive ? "8d700000" : "01700000";
  return `DLNA.ORG_OP=${isLive ? "00" : "01"};DLNA.ORG_CI=0;DLNA.ORG_FLAGS=${flags}${"0".repeat(24)}`;
}
