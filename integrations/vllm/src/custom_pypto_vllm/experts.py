"""How DeepSeek-V4 chooses experts. vLLM has that only for AMX."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn.functional import softplus

from .grouped_experts import GroupedExperts
from .names import CPURouter, DeepseekV4MoE, UnquantizedFusedMoEMethod


class Router(CPURouter):  # type: ignore[misc]
    """Chooses by the root of softplus plus a bias, or by a table of the tokens."""

    def _compute_routing(
        self,
        hidden_states: Tensor,
        router_logits: Tensor,
        indices_type: Any,
        *,
        input_ids: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return weights and experts, [tokens, experts of a token]."""
        scores = softplus(router_logits.float()).sqrt()
        if self._hash_indices_table is not None:
            chosen = self._hash_indices_table[input_ids].long()
        else:
            chosen = (scores + self.e_score_correction_bias).topk(self.top_k).indices
        weights = scores.gather(1, chosen)
        weights = weights * (self.routed_scaling_factor / weights.sum(-1, keepdim=True))
        return weights, chosen.int()


class ServedMoE(DeepseekV4MoE):  # type: ignore[misc]
    """vLLM's layer with that choice, and our experts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        router, method = self.experts.router, self.experts.routed_experts.quant_method
        if type(router) is not CPURouter or type(method) is not UnquantizedFusedMoEMethod:
            raise NotImplementedError(
                f"custom_pypto_vllm: vLLM chose {type(router).__name__} and {type(method).__name__}"
                " for DeepSeek-V4's experts, and the ops serve CPURouter and"
                " UnquantizedFusedMoEMethod: unset VLLM_MOE_ROUTING_SIMULATION_STRATEGY"
            )
        router.__class__ = Router
        method.experts_cls = GroupedExperts
