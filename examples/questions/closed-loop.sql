-- The largest of each latency.
SELECT name, rates_finished_per_s AS "req/s", e2e_s_max AS "E2E s", ttft_s_max AS "TTFT s", client_wait_s_max AS "client wait s",
       client_ttft_s_max AS "client TTFT s", 100 * attainment AS "TTFT < 1s, %"
FROM runs ORDER BY name LIKE '%clients', name
