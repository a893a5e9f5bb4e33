import { addressScope, canonicalAddress } from "../base/address.ts";
import type { DiagnosisRow } from "../engine/diagnosis/contract.ts";
import type { Config } from "../settings.ts";

/** Less upload than that, and most peers give little in return. */
const LITTLE_UPLOAD_BYTES_PER_SECOND = 20_000;

/** Settings that work against each other, or against what most people want. */
export function settingRows(config: Config): DiagnosisRow[] {
  const rows = [upload(config), ways(config), proxied(config), memory(config), ports(config), doors(config)];
  const found = rows.filter((row) => row !== undefined);
  if (found.length > 0) return found;
  return [{ name: "Settings", level: "ok", text: "No two of them work against each other." }];
}

function row(text: string, advice: string, level: DiagnosisRow["level"] = "warn"): DiagnosisRow {
  return { name: "Settings", level, text, advice };
}

function upload({ uploadLimit }: Config): DiagnosisRow | undefined {
  if (uploadLimit === 0 || uploadLimit >= LITTLE_UPLOAD_BYTES_PER_SECOND) return undefined;
  return row(
    "The upload limit is so low that peers have little reason to give us anything.",
    "Raise --upload-limit; a tenth of the line does no harm.",
  );
}

function ways({ dht, lsd, trackers }: Config): DiagnosisRow | undefined {
  if (dht === "on" || lsd === "on" || trackers.length > 0) return undefined;
  return row(
    "With the DHT and local discovery off, content whose link names no tracker is never found.",
    "Turn --dht on, or name --trackers.",
    "note",
  );
}

function proxied({ proxy, proxyStrict, portMapping, lsd }: Config): DiagnosisRow | undefined {
  if (proxy === "") return undefined;
  if (proxyStrict === "off")
    return row(
      "What the proxy cannot carry goes around it, and shows this machine's address.",
      "Turn --proxy-strict on where nobody may see it.",
    );
  if (portMapping === "off" && lsd === "off") return undefined;
  return row(
    "With a strict proxy the router is not asked for anything, and nobody is looked for in this network.",
    "Nothing needs to be done; --port-mapping off and --lsd off say the same.",
    "note",
  );
}

function memory({ memoryLimit, downloadLimit, maxConnections }: Config): DiagnosisRow | undefined {
  if (downloadLimit > 0 || memoryLimit / maxConnections >= 64 * 1024) return undefined;
  return row(
    "For so many connections there is little memory for pieces on their way.",
    "Raise --memory-limit, or lower --max-connections.",
    "note",
  );
}

function ports({ portFile, portCommand, portMapping }: Config): DiagnosisRow | undefined {
  if (portFile !== "" && portCommand !== "")
    return row("Both a file and a command name the port.", "Leave out --port-file or --port-command.");
  if ((portFile === "" && portCommand === "") || portMapping === "off") return undefined;
  return row(
    "The port comes from elsewhere, so the router is not asked to let peers in.",
    "Nothing needs to be done; --port-mapping off says the same.",
    "note",
  );
}

function doors({ host, trustedProxies }: Config): DiagnosisRow | undefined {
  const address = canonicalAddress(host);
  const isOpen = address !== undefined && addressScope(address) === "global";
  if (!isOpen || trustedProxies.length > 0) return undefined;
  return row(
    `The interface listens at ${host}, an address of the Internet.`,
    "Let only this network in (--host with an address of it), or put a proxy with TLS before it.",
  );
}
