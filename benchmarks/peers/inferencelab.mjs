// One run of inference-lab: `node inferencelab.mjs FOLDER REQUESTS`, where FOLDER has node_modules with
// @doublewordai/inference-lab, of which this was written for 0.2.1.
import fs from 'fs';
import path from 'path';

const [folder, requests] = process.argv.slice(2);
const place = path.resolve(folder, 'node_modules/@doublewordai/inference-lab');
const { default: init, run_simulation } = await import(path.join(place, 'inference_lab.js'));
await init({ module_or_path: fs.readFileSync(path.join(place, 'inference_lab_bg.wasm')) });
run_simulation(JSON.stringify({
  hardware: { name: 'H100', compute_flops: 1.513e15, memory_bandwidth: 3.35e12, memory_capacity: 8e10,
    bytes_per_param: 2, kv_cache_capacity: 1000000000000 },
  model: { name: 'llama-8b', num_parameters: 8e9, num_layers: 32, hidden_dim: 4096, num_heads: 32, num_kv_heads: 8,
    max_seq_len: 8192 },
  scheduler: { max_num_batched_tokens: 2048, max_num_seqs: 256, policy: 'fcfs', enable_chunked_prefill: true,
    long_prefill_token_threshold: 0, max_num_partial_prefills: 256, block_size: 16 },
  workload: { arrival_pattern: 'poisson', arrival_rate: 20.0, num_requests: Number(requests), seed: 0,
    duration_secs: 1e9, input_len_dist: { type: 'fixed', value: 512 }, output_len_dist: { type: 'fixed', value: 128 } },
  simulation: { log_interval: 1000000 }, log_interval: 1000000,
}));
