SELECT engine_evict AS evict, engine_harvest AS harvest, steps, tokens_output AS delivered, tokens_lost AS lost,
       slot_steps_held AS held, ttft_s_n AS answered, itl_s_n AS gaps
FROM runs ORDER BY held, lost
