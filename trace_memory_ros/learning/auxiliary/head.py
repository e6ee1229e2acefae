"""The auxiliary head of the memory-first phase."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trace_memory_ros.learning.agent import Agent, Losses, shared
from trace_memory_ros.learning.auxiliary.future import FuturePictures
from trace_memory_ros.learning.auxiliary.pointing import Pointing
from trace_memory_ros.learning.auxiliary.recognition import recognition_loss
from trace_memory_ros.learning.data.batches import BatchBuilder, EpisodeBatch
from trace_memory_ros.memory.base import Readout
from trace_memory_ros.policies.act.policy import chunk_l1
from trace_memory_ros.policies.places import Places
from trace_memory_ros.vision.base import Features
from trace_memory_ros.vision.encoder import Pool


class AuxiliaryHead(nn.Module):
    """An agent's encoder and memory under an auxiliary head that predicts the chunk from the read vector and the state.

    A two-layer perceptron of `hidden` units, discarded after the memory-first phase; it makes the path from cue to loss
    short. Where the eyes attend to places, it is also told where in the present picture that lies which the readout
    asks for.
    """

    def __init__(self, agent: Agent, hidden: int = 128) -> None:
        super().__init__()
        self.agent = agent
        self.shape = (agent.policy.config.chunk, len(agent.policy.config.action_names))
        self._read = agent.memory.dims.width + agent.memory.address_width
        self._state = agent.encoder.config.state_dim
        outputs = self.shape[0] * self.shape[1]
        self.head = nn.ModuleDict()
        inputs = self._read + self._state
        places = _places(agent, self._read)
        if places is not None:
            self.head["places"] = places
            inputs += places.width
        self._inputs, self._hidden = inputs, hidden
        self.head["chunk"] = self._perceptron(outputs)
        self.head.to(agent.hardware.device)
        self.recognises = False
        self.answers = 0

    def recognise(self) -> None:
        """Tell what was seen from what was seen in other episodes as well; ValueError for eyes that don't attend."""
        if "places" not in self.head:
            raise ValueError(
                "recipe.recognition_weight asks for eyes that attend to places: set eyes.pooling, or it to 0"
            )
        self.recognises = True

    def foresee(self, training: BatchBuilder, weight: float) -> None:
        """Predict the pictures to come as well, which the loss counts by `weight`; ValueError without a camera."""
        future = FuturePictures.fit(training, self._read + self._state, weight)
        self.head["future"] = future.to(self.agent.hardware.device)

    def name_answers(self, training: BatchBuilder, pointed: int = 0) -> None:
        """Name what is right near a decision as well, of the answers that there are in training.

        pointed: so many of them from there on, by pointing. Raises ValueError for eyes that don't attend to places.
        """
        count = 1 + max(answer for episode in training.data.episodes for answer in episode.demo.answers)
        known = self._read + self._state
        if not pointed:
            answer: nn.Module = self._perceptron(count)
        elif "places" in self.head and isinstance(places := self.head["places"], Places):
            answer = Pointing(places, self._read, known, count, pointed)
        else:
            raise ValueError(
                f"recipe.pointed_answers = {pointed} asks for eyes that attend to places: set eyes.pooling, or it to 0"
            )
        self.head["answer"] = answer.to(self.agent.hardware.device)
        self.answers = max(1, pointed)

    def forward(self, batch: EpisodeBatch) -> Tensor:
        """Normalised action chunks `(B, R, H, A)`."""
        here = batch.to(self.agent.hardware.device)
        looked = self._look(here)
        return self._chunks(here, self._told(here, self.agent.read(here, looked), looked)).to(batch.actions)

    @torch.no_grad()
    def named(self, batch: EpisodeBatch) -> Tensor:
        """The answer `(B, R)` that it names at every read. Raises KeyError where it was not taught to name any."""
        here = batch.to(self.agent.hardware.device)
        looked = self._look(here)
        readout = self.agent.read(here, looked)
        logits = self._answers(here, readout, looked, self._told(here, readout, looked))
        return logits[:, 0].argmax(dim=-1).reshape(batch.last_write.shape).to(batch.last_write)

    def losses(self, batch: EpisodeBatch) -> Losses:
        """Chunk L1 of the head, errors of the pictures to come and of the answers, and the memory's auxiliary terms,
        unweighted.
        """
        batch = batch.to(self.agent.hardware.device)
        looked = self._look(batch)
        readout, losses = self.agent.recall(batch, looked)
        target = self.agent.policy.normalise_actions(batch.actions)
        told = self._told(batch, readout, looked)
        own = {"chunk_l1": self.chunk_loss(self._chunks(batch, told), target, batch.valid)}
        if batch.answers is not None:
            own["answer"] = answer_loss(self._answers(batch, readout, looked, told), batch.answers.flatten(0, 1))
        if self.recognises and isinstance(places := self.head["places"], Places):
            own["recognition"] = recognition_loss(places, _asked(readout), batch, self.agent.look(batch.writes))
        if batch.future is not None and isinstance(future := self.head["future"], FuturePictures):
            own["future"] = future.loss(self._known(batch, readout), batch.future.flatten(0, 1))
        return losses | shared(own, batch.valid.flatten(0, 1), self.agent.group)

    def chunk_loss(self, predicted: Tensor, target: Tensor, valid: Tensor) -> Tensor:
        """Error of chunks `(B, R, H, A)` where they are `valid` `(B, R, H)`."""
        return chunk_l1(predicted, target, valid)

    def _look(self, batch: EpisodeBatch) -> Features | None:
        return self.agent.look(batch.reads) if "places" in self.head else None

    def _known(self, batch: EpisodeBatch, readout: Readout) -> Tensor:
        return torch.cat([readout.vector, readout.address, batch.reads.state.flatten(0, 1)], dim=-1)

    def _perceptron(self, outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(self._inputs, self._hidden), nn.GELU(), nn.Linear(self._hidden, outputs))

    def _told(self, batch: EpisodeBatch, readout: Readout, looked: Features | None) -> Tensor:
        """What is known at the reads `(B * R, w)`, and where in the present that lies which the readout asks for."""
        known = self._known(batch, readout)
        if looked is not None:
            known = torch.cat([known, self.head["places"](_asked(readout), looked.flatten().tokens)], dim=-1)
        return known

    def _answers(self, batch: EpisodeBatch, readout: Readout, looked: Features | None, told: Tensor) -> Tensor:
        """Logits `(B * R, J, n)` of the J answers that are named."""
        naming = self.head["answer"]
        if isinstance(naming, Pointing) and looked is not None:
            return naming(_asked(readout), self._known(batch, readout), looked.flatten().tokens)
        logits: Tensor = naming(told)[:, None]
        return logits

    def _chunks(self, batch: EpisodeBatch, told: Tensor) -> Tensor:
        chunks: Tensor = self.head["chunk"](told)
        return chunks.reshape(*batch.last_write.shape, *self.shape)


def _asked(readout: Readout) -> Tensor:
    """What places are asked with."""
    return torch.cat([readout.vector, readout.address], dim=-1)


def answer_loss(logits: Tensor, answers: Tensor) -> Tensor:
    """Cross-entropy of logits `(N, J, n)` for answers `(N, J)`, a mean over all reads: an answer of -1 adds nothing."""
    total = nn.functional.cross_entropy(logits.flatten(0, 1), answers.flatten(), ignore_index=-1, reduction="sum")
    return total / len(answers)


def _places(agent: Agent, asked: int) -> Places | None:
    """Those of a policy that looks at the same tokens, which go on with what they learn here; or ones of its own."""
    encoder, theirs = agent.encoder, agent.policy.places
    if encoder.config.shared and theirs is not None:
        return theirs
    if not (encoder.config.attends and isinstance(encoder.pool, Pool)):
        return None
    grid = encoder.vision.token_grid(encoder.config.thumbnail_px)
    return Places(encoder.pool.norm, asked, encoder.config.cameras, grid, encoder.pool.salience, encoder.vision.placed)
