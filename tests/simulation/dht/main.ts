import { randomBelow } from "../../../src/base/random.ts";
import { DhtNetwork } from "./dht-network.ts";

/** Measures lookups in a network of many nodes: `bun tests/simulation/dht/main.ts [nodes] [seed]
 * [lookups]`. */
function main(): void {
  const [count = 1_000, seed = 1, lookups = 100] = process.argv.slice(2).map(Number);
  const net = new DhtNetwork(seed);
  net.populate(count, 40);
  net.run(35_000);
  const someone = () => net.members[randomBelow(net.random, count)]!;
  const firsts: number[] = [];
  const questions: number[] = [];
  for (let i = 0; i < lookups; i++) {
    const infohash = Uint8Array.from({ length: 20 }, () => randomBelow(net.random, 256));
    const giver = someone();
    const announced = giver.nextTask();
    giver.input({ kind: "peers", task: announced, infohash, announce: { port: 6881, isSeed: false } });
    questions.push(giver.finish(announced)!.queries);
    const seeker = net.join({ found: [someone().address] });
    const beganAt = net.events.now;
    const task = seeker.nextTask();
    seeker.input({ kind: "peers", task, infohash, announce: undefined });
    questions.push(seeker.finish(task)!.queries);
    const first = seeker.of(task).find(({ output }) => output.kind === "peers");
    firsts.push(first ? first.at - beganAt : Number.POSITIVE_INFINITY);
    seeker.leave();
  }
  const at = (values: number[], share: number) =>
    Math.round(values.sort((a, b) => a - b)[Math.floor(share * (values.length - 1))]!);
  console.log(`${count} nodes, seed ${seed}, ${lookups} newcomers that know one node, 50 ms each way`);
  console.log(
    `first peer after p50 ${at(firsts, 0.5)} ms, p95 ${at(firsts, 0.95)} ms, most ${at(firsts, 1)} ms`,
  );
  console.log(`questions of a lookup: p50 ${at(questions, 0.5)}, most ${at(questions, 1)}`);
  console.log(`heap ${Math.round(process.memoryUsage().heapUsed / count / 1024)} KiB a node`);
}

main();
