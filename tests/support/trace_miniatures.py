"""A small valid file of every format, as a dictionary of name to content; none is from a real file."""

import json


def lines(*objects):
    return "".join(json.dumps(item) + "\n" for item in objects).encode()


def table(*rows):
    return ("\n".join(rows) + "\n").encode()


AZURE = table(
    "TIMESTAMP,ContextTokens,GeneratedTokens",
    "2023-11-16 18:15:46.6805900,374,44",
    "2023-11-16 18:15:50.9951690,396,109",
)
AZURE_2024 = table(
    "TIMESTAMP,ContextTokens,GeneratedTokens",
    "2024-05-10 00:00:00.009930+00:00,2162,5",
    "2024-05-10 00:00:01+00:00,2399,6",
)
AZURE_2025 = table(
    "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens",
    "2024-10-15T12:00:00.269Z,3,2162,5",
    "2024-10-15T12:00:01Z,0,20,6",
)
BURSTGPT = table(
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type",
    "5,ChatGPT,472,18,490,Conversation log",
    "45,GPT-4,0,0,0,Conversation log",
    "45,GPT-4,417,276,693,API log",
)
BURSTGPT_3 = table(
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type",
    "19440110.0,s-1,43,GPT-4,906,446,1352,Conversation log",
    "19440161.0,,2,ChatGPT,36,29,65,API log",
    "19440192.0,s-1,0,GPT-4,1400,123,1523,Conversation log",
)
MOONCAKE = lines(
    {"timestamp": 0, "input_length": 513, "output_length": 5, "hash_ids": [0, 1]},
    {"timestamp": 3000, "input_length": 1024, "output_length": 1, "hash_ids": [0, 2]},
    {"timestamp": 3000, "input_length": 8, "output_length": 2, "hash_ids": [3]},
)
AIPERF_TRACE = lines(
    {"session_id": "a", "timestamp": 1000, "input_length": 512, "output_length": 4, "hash_ids": [7]},
    {"timestamp": 500, "input_length": 10, "output_length": 4},
    {"session_id": "a", "delay": 250, "input_length": 600, "output_length": 9, "hash_ids": [7, 8]},
    {"timestamp": 2000, "text_input": "Hello", "output_length": 4},
)
BAILIAN = lines(
    {"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 20, "output_length": 9,
     "type": "text", "turn": 1, "hash_ids": [11, 12]},
    {"chat_id": 160, "parent_chat_id": 159, "timestamp": 62.5, "input_length": 33, "output_length": 8,
     "type": "text", "turn": 2, "hash_ids": [11, 13, 14]},
    {"chat_id": 161, "parent_chat_id": 7, "timestamp": 63, "input_length": 16, "output_length": 1, "type": "file",
     "turn": 3, "hash_ids": [15]},
)  # fmt: skip
VIDUR = table("arrived_at,num_prefill_tokens,num_decode_tokens", "0.0,374,44", "4.314579,396,109")
LENGTHS = table(
    "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio",
    "1047,1368,2415,0.765",
    "74,918,992,0.08",
)
LLMSERVINGSIM = lines(
    {"input_toks": 3, "output_toks": 2, "arrival_time_ns": 47, "input_tok_ids": [5, 6, 7], "output_tok_ids": [8, 9]},
    {
        "session_id": "agent",
        "arrival_time_ns": 100,
        "sub_requests": [
            {"input_toks": 10, "output_toks": 4, "tool_duration_ns": 30},
            {"input_toks": 20, "output_toks": 5, "tool_duration_ns": 70},
            {"input_toks": 40, "output_toks": 6, "tool_duration_ns": 0},
        ],
    },
    {"input_toks": 4, "output_toks": 1, "arrival_time_ns": 120},
)
LLMSERVINGSIM_LOG = lines(
    {"request_id": "bench-0", "input_toks": 8, "output_toks": 11, "arrival_time": 1787267980.0827403,
     "queued_ts": 27536.5, "scheduled_ts": 27536.75, "first_token_ts": 27537.5, "last_token_ts": 27542.5},
    {"request_id": "bench-1", "input_toks": 9, "output_toks": 3, "arrival_time": 1787267981.0827403,
     "queued_ts": 27537.5, "scheduled_ts": None, "first_token_ts": None, "last_token_ts": None},
)  # fmt: skip
SERVEGEN_RATES = table(
    "client,window_start_s,rate_rps,cv,process,arg1,arg2",
    "0,0,0,0,,0,0",
    "0,600,0.5,1.25,Gamma,0.64,3.125",
    "7,600,2,0.5,Weibull,2.1,0.56",
)
SERVEGEN_CHUNK = table("0,0,0,,0,0", "600,0.5,1.25,Gamma,0.64,3.125")
SERVEGEN_LENGTHS = lines(
    {"client": 3, "windows": {"0": {"input_tokens": "{45: 0.25, 46: 0.75}", "output_tokens": "{}"},
                              "21600": {"input_tokens": "{7: 1.0}", "reason_ratio": "{0.5: 0.4, 0.75: 6e-1}",
                                        "output_tokens": "{1: 1.0}"}}},
)  # fmt: skip
TRACEV2 = table(
    "request_id,client_id,tenant_id,slo_class,session_id,round_index,prefix_group,prefix_length,streaming,input_tokens,"
    "output_tokens,text_tokens,image_tokens,audio_tokens,video_tokens,reason_ratio,model,deadline_us,"
    "server_input_tokens,arrival_time_us,send_time_us,first_chunk_time_us,last_chunk_time_us,num_chunks,status,error_message,finish_reason",
    "1,c,A,,s,1,,0,true,1024,128,0,0,0,0,0,,0,1010,900000,"
    "1782183938900000,1782183939000000,1782183940270000,130,ok,,length",
    "0,c,A,,s,0,g,100,true,24,128,0,0,0,0,0,,700000,0,500000,1782183938500000,0,0,0,timeout,,",
    '2,c,B,,,0,,0,true,256,128,0,0,0,0,0,,0,0,950000,1782183939000000,0,0,0,error,"broken,\npipe",',
)
CHUNKS = table("request_id,chunk_index,timestamp_us", "0,0,1782183938283329", "0,1,1782183938283355")
VLLM = lines(
    {"date": "20260102-030405", "endpoint_type": "vllm", "backend": "vllm", "label": None, "model_id": "m",
     "tokenizer_id": "m", "num_prompts": 3, "request_rate": "inf", "burstiness": 1.0, "max_concurrency": None,
     "duration": 2.5, "completed": 2, "failed": 1, "total_input_tokens": 30, "mean_ttft_ms": 100.0,
     "input_lens": [10, 20, 30], "output_lens": [3, 1, 0], "ttfts": [0.1, 0.2, 0.0],
     "itls": [[0.05, 0.07], [], []], "start_times": [102.5, 101.0, 101.5], "generated_texts": ["a", "b", ""],
     "errors": ["", "", "Traceback"]},
)  # fmt: skip
SGLANG = lines(
    {"backend": "sglang", "dataset_name": "random", "request_rate": 1.0, "max_concurrency": None, "duration": 9.5,
     "completed": 1, "total_output_tokens_retokenized": 4, "input_lens": [7, 5], "output_lens": [2, 0],
     "ttfts": [0.25, 0.0], "itls": [[0.5], []], "generated_texts": ["a", ""], "errors": ["", "refused"]},
    {"backend": "sglang", "dataset_name": "random", "request_rate": 2.0, "max_concurrency": None, "duration": 5.5,
     "completed": 300},
)  # fmt: skip
GUIDELLM = lines(
    {"metadata": {"version": 1, "guidellm_version": "0.5.0"}, "benchmarks": [
        {"requests": {
            "successful": [{"request_id": "a", "prompt_tokens": 12, "output_tokens": 5, "info": {"timings": {
                "targeted_start": 1700000000.5, "request_start": 1700000000.75, "first_token_iteration": 1700000001.0,
                "last_token_iteration": 1700000003.0, "request_end": 1700000003.25}}}],
            "incomplete": [{"request_id": "b", "info": {"timings": {"targeted_start": 1700000001.5,
                "request_start": 1700000001.5}}, "input_metrics": {"total_tokens": 9}, "output_metrics": {}}],
            "errored": [{"request_id": "c", "info": {"error": "Read timeout", "timings": {
                "targeted_start": 1700000002.0, "request_start": None}}}],
        }},
    ]},
)  # fmt: skip
AIPERF = lines(
    {"metadata": {"x_request_id": "r1", "conversation_id": None, "turn_index": 0, "benchmark_phase": "profiling",
                  "request_start_ns": 1762551534797067827, "request_ack_ns": 1762551534807258440,
                  "request_end_ns": 1762551538441354976, "was_cancelled": False, "cancellation_time_ns": None},
     "metrics": {"input_sequence_length": {"value": 100, "unit": "tokens"},
                 "output_sequence_length": {"value": 3, "unit": "tokens"},
                 "time_to_first_token": {"value": 31.5, "unit": "ms"},
                 "request_latency": {"value": 71.5, "unit": "ms"},
                 "inter_chunk_latency": {"value": [18.0, 22.0], "unit": "ms"}}, "error": None},
    {"metadata": {"x_request_id": "r2", "benchmark_phase": "profiling", "request_start_ns": 1762551534897067827,
                  "request_end_ns": 1762551535897067827, "was_cancelled": True}, "metrics": {},
     "error": {"code": 499, "message": "cancelled", "type": "RequestCancellationError"}},
)  # fmt: skip
AIPERF_OLD = lines(
    {"metadata": {"timestamp_ns": 1762551534797067827, "x_request_id": None},
     "metrics": {"input_sequence_length": {"value": 100, "unit": "tokens"},
                 "output_sequence_length": {"value": 3, "unit": "tokens"}, "ttft": {"value": 0.5, "unit": "s"},
                 "request_latency": {"value": 1500000000, "unit": "ns"}}, "error": None},
)  # fmt: skip
INFERENCE_PERF = table(
    "index,arrival_time_us,input_tokens,output_tokens_client,has_error,ttft_s,e2e_s",
    "0,0,591,140,0,0.125,1.943",
    "1,53490,0,0,1,,300.5",
    "2,64932,600,0,0,0.068,1.886",
    "3,70000,0,0,1,,12.5",
)
INFERENCE_PERF_REPORT = json.dumps(
    [
        {"start_time": 1393.25, "end_time": 1395.25, "request": "{}", "error": None,
         "info": {"input_tokens": 591, "output_tokens": 3, "output_token_times": [1393.5, 1394.0, 1395.0]}},
        {"start_time": 1394.0, "end_time": 1394.5, "request": "{}", "error": {"error_type": "ClientError"},
         "info": {"input_tokens": 0, "output_tokens": 0, "output_token_times": []}},
    ]
).encode()  # fmt: skip
LLMPERF = json.dumps(
    [
        {"error_code": None, "error_msg": "", "inter_token_latency_s": 0.1, "ttft_s": 0.5,
         "end_to_end_latency_s": 2.5, "number_total_tokens": 555, "number_output_tokens": 5,
         "number_input_tokens": 550},
        {"error_code": 429, "error_msg": "too many", "inter_token_latency_s": 0, "ttft_s": 0,
         "end_to_end_latency_s": 0, "number_total_tokens": 0, "number_output_tokens": 0, "number_input_tokens": 550},
    ]
).encode()  # fmt: skip
LMBENCH = table(
    "stack,scenario,qps,prompt_tokens,generation_tokens,ttft,generation_time,user_id,question_id,"
    "launch_time,finish_time",
    "vllm,short,4.0,76.0,21.0,0.5,2.0,3.0,1.0,1746748172.5,1746748175.0",
    "vllm,short,4.0,75.0,20.0,0.25,1.0,,,1746748172.0,1746748173.25",
    "vllm,short,8.0,75.0,20.0,0.25,1.0,,,1746748200.0,1746748201.25",
)
SLORA = lines(
    {"config": {"num_adapters": 2, "mode": "real"}, "result": {"total_time": 9.5, "num_abort": 0, "responses": [
        {"adapter_dir": "t-1", "prompt_len": 13, "output_len": 5, "request_latency": 2.5, "first_token_latency": 0.5,
         "req_time": 0.25},
        {"adapter_dir": "t-2", "prompt_len": 36, "output_len": 9, "request_latency": -1, "first_token_latency": -1,
         "req_time": 0.0},
    ]}},
)  # fmt: skip
LITELLM = lines(
    {"session": "s1", "timestamp": "2026-04-23T17:20:14.872283+00:00", "status": "success", "model": "m-4",
     "prompt_tokens": 8, "completion_tokens": 1, "cost": 0.001, "response_created": 1776964814},
    {"session": "s1", "timestamp": "2026-04-23T17:20:15.489618+00:00", "status": "success", "model": "provider/m-4",
     "prompt_tokens": 92465, "completion_tokens": 203, "cost": 0.0, "response_created": 1776960606},
    {"session": "s1", "timestamp": "2026-04-23T17:20:16+00:00", "status": "failure", "model": "m-4",
     "prompt_tokens": 0, "completion_tokens": 0, "cost": 0.0, "response_created": None},
)  # fmt: skip
LITELLM_PAYLOAD = lines(
    {"id": "x", "status": "success", "model": "m", "prompt_tokens": 10, "completion_tokens": 3,
     "startTime": 1700000000.25, "completionStartTime": 1700000000.75, "endTime": 1700000002.75, "cache_hit": False},
)  # fmt: skip
WEKA = lines(
    {"id": "conv", "models": ["m"], "block_size": 64, "hash_id_scope": "local", "requests": [
        {"t": 0.0, "type": "s", "model": "m", "in": 100, "out": 9, "hash_ids": [1, 2], "api_time": 4.5, "ttft": 0.5},
        {"t": 6.0, "type": "subagent", "requests": [
            {"t": 7.0, "type": "n", "model": "m", "in": 64, "out": 2, "hash_ids": [3]}]},
        {"t": 9.0, "type": "n", "model": "m", "in": 129, "out": 2, "hash_ids": [1, 2, 4]}]},
)  # fmt: skip
ENGINE_LOG = lines(
    {"config": {"max_num_seqs": 16}, "host": "h", "trace:2:2:1": {"t0": 2436.5, "rate": 2.0, "requests": [
        {"id": "a", "prompt_len": 3, "max_tokens": 4, "planned": 0.1, "arrival": 0.125,
         "tok_times": [0.5, 0.75, 1.125], "prompt_token_ids": [4, 5, 6], "ttft": 0.375, "e2e": 1.0},
        {"id": "b", "prompt_len": 2, "max_tokens": 1, "planned": 0.1, "arrival": 0.5, "tok_times": [],
         "prompt_token_ids": [4, 5]}]}},
)  # fmt: skip
COLUMNS = table("arrival_ns,prompt,output,tenant,status", "5,10,2,a,ok", "9,11,3,b,500", "12,0,0,b,error")

MINIATURES = {
    "azure": [AZURE, AZURE_2024, AZURE_2025],
    "burstgpt": [BURSTGPT, BURSTGPT_3],
    "mooncake": [MOONCAKE, AIPERF_TRACE],
    "bailian": [BAILIAN],
    "vidur": [VIDUR],
    "lengths": [LENGTHS],
    "llmservingsim": [LLMSERVINGSIM],
    "llmservingsim-log": [LLMSERVINGSIM_LOG],
    "servegen-rates": [SERVEGEN_RATES, SERVEGEN_CHUNK],
    "servegen-lengths": [SERVEGEN_LENGTHS],
    "tracev2": [TRACEV2],
    "tracev2-chunks": [CHUNKS],
    "vllm-bench": [VLLM],
    "sglang-bench": [SGLANG],
    "guidellm": [GUIDELLM],
    "aiperf": [AIPERF, AIPERF_OLD],
    "inference-perf": [INFERENCE_PERF, INFERENCE_PERF_REPORT],
    "llmperf": [LLMPERF],
    "lmbench": [LMBENCH],
    "slora": [SLORA],
    "litellm": [LITELLM, LITELLM_PAYLOAD],
    "weka": [WEKA],
    "engine-log": [ENGINE_LOG],
    "columns": [COLUMNS],
}
