import assert from "node:assert/strict";
import { test } from "node:test";
import { metricsText } from "../../src/wire/metrics-text.ts";

test("metricsText: the help, the type and the samples of each metric; labels are escaped", () => {
  const text = metricsText([
    { name: "peers", kind: "gauge", help: "Connected\npeers, \\ included.", samples: [{ value: 3 }] },
    {
      name: "calls_total",
      kind: "counter",
      help: "Calls.",
      samples: [
        { labels: { name: 'a"b\\c\nd', kind: "x" }, value: 0.5 },
        { value: Number.POSITIVE_INFINITY },
      ],
    },
    { name: "unknown", kind: "gauge", help: "Nothing is known.", samples: [] },
  ]);
  assert.equal(
    text,
    [
      "# HELP peers Connected\\npeers, \\\\ included.",
      "# TYPE peers gauge",
      "peers 3",
      "# HELP calls_total Calls.",
      "# TYPE calls_total counter",
      'calls_total{name="a\\"b\\\\c\\nd",kind="x"} 0.5',
      "calls_total +Inf",
      "",
    ].join("\n"),
  );
});
