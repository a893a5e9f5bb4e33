import type { OriginForm, SITES, SWITCHES, TargetKind, TokenForm, Where } from "./dimensions.ts";

/** What must come of a request. */
export type Verdict = "misdirected" | "denied" | "token_required" | "wrong_token" | "allowed";

type Page = "own" | "listed" | "foreign";

/** One request, as far as the interface asks about it. */
export interface Facts {
  readonly kind: TargetKind;
  readonly where: Where;
  readonly isOurHost: boolean;
  readonly token: TokenForm;
  readonly origin: OriginForm;
  readonly site: (typeof SITES)[number];
  readonly switches: (typeof SWITCHES)[number];
}

/** By Origin (rows) and Sec-Fetch-Site (absent, none, same-origin, same-site, cross-site): O own, L listed, F foreign. */
const PAGES: Readonly<Record<OriginForm, string>> = {
  none: "OOOFF",
  own: "OOOFF",
  "own, another port": "FFFFF",
  foreign: "FFFFF",
  null: "FFFFF",
  listed: "LLLLL",
  two: "FFFFF",
};
const COLUMNS: Readonly<Record<Facts["site"], number>> = {
  absent: 0,
  none: 1,
  "same-origin": 2,
  "same-site": 3,
  "cross-site": 4,
};
const PAGE_NAMES: Readonly<Record<string, Page>> = { O: "own", L: "listed", F: "foreign" };

type Rule = readonly [where: Where | "*", page: Page | "*", token: TokenForm | "*", verdict: Verdict];

/** What a token is worth, once it is asked for. */
const BY_TOKEN: readonly Rule[] = [
  ["*", "*", "good", "allowed"],
  ["*", "*", "none", "token_required"],
  ["*", "*", "*", "wrong_token"],
];

/** Interface: Authentication 1, 2, 4 and the tables; the first rule that fits counts. */
const RULES: Readonly<Record<TargetKind, readonly Rule[]>> = {
  key: [
    ["local", "own", "*", "allowed"],
    ["*", "*", "*", "denied"],
  ],
  switch: [
    ["intranet", "*", "*", "denied"],
    ["internet", "*", "*", "denied"],
    ["*", "foreign", "*", "denied"],
    ...BY_TOKEN,
  ],
  private: [["*", "foreign", "*", "denied"], ...BY_TOKEN],
  closed: [["*", "own", "*", "allowed"], ["*", "foreign", "*", "denied"], ...BY_TOKEN],
  open: [["*", "*", "*", "allowed"]],
  media: [["*", "*", "*", "allowed"]],
  own: [
    ["*", "own", "*", "allowed"],
    ["*", "*", "*", "denied"],
  ],
  static: [["*", "*", "*", "allowed"]],
};

function pageOf({ origin, site }: Facts): Page {
  return PAGE_NAMES[PAGES[origin][COLUMNS[site]]!]!;
}

/** What must come of a request, by the interface. */
export function expectedVerdict(facts: Facts): Verdict {
  if (!facts.isOurHost) return "misdirected";
  const isIn = {
    local: true,
    intranet: facts.switches.allowsIntranet,
    internet: facts.switches.allowsRemote,
  }[facts.where];
  if (!isIn) return "denied";
  const page = pageOf(facts);
  const fits = (wanted: string, got: string) => wanted === "*" || wanted === got;
  return RULES[facts.kind].find(
    ([where, from, token]) => fits(where, facts.where) && fits(from, page) && fits(token, facts.token),
  )![3];
}

/** Which pages may read the answer: `*`, the one that asks, or none. */
export function expectedReaders(facts: Facts, verdict: Verdict): "*" | "this" | undefined {
  if (verdict === "misdirected" || verdict === "denied") return undefined;
  if (facts.kind === "media" || facts.kind === "open") return "*";
  const isMethod = ["switch", "private", "closed"].includes(facts.kind);
  return isMethod && pageOf(facts) === "listed" ? "this" : undefined;
}
