-- All slots are bought while a padded position of 40 us is computed.
WITH paid AS (SELECT *, tokens_padding * engine_slots * 40e-6 AS padding_s, slot_seconds_held AS held_s FROM runs)
SELECT name, engine_slots AS slots, avg(tokens_padding)::INT AS padding, avg(slot_steps_held)::INT AS held,
       100 * avg(padding_s / slot_seconds_bought) AS "padding, %", 100 * avg(held_s / slot_seconds_bought) AS "held, %",
       avg(padding_s / held_s) AS ratio
FROM paid GROUP BY ALL ORDER BY name, slots
