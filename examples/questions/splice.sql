-- A step costs 1 ms and a copied position 1 us: what is not steps is copies.
SELECT name, engine_memory AS memory, steps, round(1e6 * makespan_s - 1e3 * steps)::INT AS copied
FROM runs ORDER BY ALL
