"""The transformers of models/transformer.cpp, llama.cpp and vit.cpp."""

import torch
from torch.nn import functional

from stepping.net import Net, attention

DROPOUT = 0.1  # of BERT and GPT-2


def dropped(x):
    return functional.dropout(x, DROPOUT)


class Bert(Net):
    """With both pretraining heads, which share no weight but that of the word embedding."""

    LAYERS, FEATURES, HEADS, VOCABULARY, POSITIONS = 24, 1024, 16, 30522, 512

    def __init__(self, device):
        super().__init__(device)
        d = self.FEATURES
        self.embedding("bert.embeddings.word_embeddings", self.VOCABULARY, d)
        self.embedding("bert.embeddings.position_embeddings", self.POSITIONS, d)
        self.embedding("bert.embeddings.token_type_embeddings", 2, d)
        self.layer_norm("bert.embeddings.LayerNorm", d)
        for layer in range(self.LAYERS):
            name = f"bert.encoder.layer.{layer}"
            for projection in ("query", "key", "value"):
                self.linear(f"{name}.attention.self.{projection}", d, d)
            self.linear(f"{name}.attention.output.dense", d, d)
            self.layer_norm(f"{name}.attention.output.LayerNorm", d)
            self.linear(f"{name}.intermediate.dense", d, 4 * d)
            self.linear(f"{name}.output.dense", 4 * d, d)
            self.layer_norm(f"{name}.output.LayerNorm", d)
        self.linear("bert.pooler.dense", d, d)
        self.linear("cls.predictions.transform.dense", d, d)
        self.layer_norm("cls.predictions.transform.LayerNorm", d)
        self.vector("cls.predictions.bias", self.VOCABULARY)
        self.linear("cls.seq_relationship", d, 2)

    def block(self, x, name):
        heads = [self[f"{name}.attention.self.{projection}"](x) for projection in ("query", "key", "value")]
        y = self[f"{name}.attention.output.dense"](attention(*heads, self.HEADS, dropout=DROPOUT))
        x = self[f"{name}.attention.output.LayerNorm"](x + dropped(y))
        y = self[f"{name}.output.dense"](functional.gelu(self[f"{name}.intermediate.dense"](x)))
        return self[f"{name}.output.LayerNorm"](x + dropped(y))

    def forward(self, tokens, segments, masked, masked_tokens, follows):
        """`masked`: the positions whose tokens the head predicts, [batch, number of them]."""
        words = self["bert.embeddings.word_embeddings"]
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = words(tokens) + self["bert.embeddings.position_embeddings"](positions) + self["bert.embeddings.token_type_embeddings"](segments)
        x = dropped(self["bert.embeddings.LayerNorm"](x))
        for layer in range(self.LAYERS):
            x = self.block(x, f"bert.encoder.layer.{layer}")
        pooled = torch.tanh(self["bert.pooler.dense"](x[:, 0]))
        y = x.gather(1, masked.unsqueeze(-1).expand(-1, -1, self.FEATURES))
        y = functional.gelu(self["cls.predictions.transform.dense"](y))
        y = self["cls.predictions.transform.LayerNorm"](y)
        logits = functional.linear(y, words.weight, self["cls.predictions.bias"])
        return (functional.cross_entropy(logits.flatten(0, 1), masked_tokens.flatten()) +
                functional.cross_entropy(self["cls.seq_relationship"](pooled), follows))


class Gpt2(Net):
    VOCABULARY = 50257

    def __init__(self, device, layers, features, heads, sequence):
        super().__init__(device)
        self.layers, self.heads = layers, heads
        self.embedding("transformer.wte", self.VOCABULARY, features)
        self.embedding("transformer.wpe", sequence, features)
        for layer in range(layers):
            name = f"transformer.h.{layer}"
            self.layer_norm(f"{name}.ln_1", features)
            self.linear(f"{name}.attn.c_attn", features, 3 * features)
            self.linear(f"{name}.attn.c_proj", features, features)
            self.layer_norm(f"{name}.ln_2", features)
            self.linear(f"{name}.mlp.c_fc", features, 4 * features)
            self.linear(f"{name}.mlp.c_proj", 4 * features, features)
        self.layer_norm("transformer.ln_f", features)

    def block(self, x, name):
        heads = self[f"{name}.attn.c_attn"](self[f"{name}.ln_1"](x)).chunk(3, -1)
        x = x + dropped(self[f"{name}.attn.c_proj"](attention(*heads, self.heads, causal=True, dropout=DROPOUT)))
        y = functional.gelu(self[f"{name}.mlp.c_fc"](self[f"{name}.ln_2"](x)))
        return x + dropped(self[f"{name}.mlp.c_proj"](y))

    def forward(self, tokens, following):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = dropped(self["transformer.wte"](tokens) + self["transformer.wpe"](positions))
        for layer in range(self.layers):
            x = self.block(x, f"transformer.h.{layer}")
        logits = functional.linear(self["transformer.ln_f"](x), self["transformer.wte"].weight)
        return functional.cross_entropy(logits.flatten(0, 1), following.flatten())


def rotated(x, heads, angles):
    """Rotary positions: halves of each head's features are rotated by `angles`, [positions, half of a head's features]."""
    batch, positions, features = x.shape
    first, second = x.view(batch, positions, heads, features // heads).chunk(2, -1)
    cos, sin = angles.cos().unsqueeze(1), angles.sin().unsqueeze(1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1).type_as(x).view(batch, positions, features)


class Llama(Net):
    """With `experts`, Mixtral: each token goes to `active` of them."""

    def __init__(self, device, layers, features, heads, key_value_heads, feed_forward, vocabulary, experts=0, active=0):
        super().__init__(device)
        self.layers, self.heads, self.key_value_heads, self.width = layers, heads, key_value_heads, features // heads
        self.experts, self.active = experts, active
        keys = self.width * key_value_heads
        self.embedding("model.embed_tokens", vocabulary, features)
        for layer in range(layers):
            name = f"model.layers.{layer}"
            self.rms_norm(f"{name}.input_layernorm", features)
            for projection, out in (("q", features), ("k", keys), ("v", keys), ("o", features)):
                self.linear(f"{name}.self_attn.{projection}_proj", features, out, False)
            self.rms_norm(f"{name}.post_attention_layernorm", features)
            if experts:
                self.linear(f"{name}.block_sparse_moe.gate", features, experts, False)
            for gate, up, down in self.feed_forwards(name):
                self.linear(gate, features, feed_forward, False)
                self.linear(up, features, feed_forward, False)
                self.linear(down, feed_forward, features, False)
        self.rms_norm("model.norm", features)
        self.linear("lm_head", features, vocabulary, False)

    def feed_forwards(self, name):
        """The three layers of each: gate, up and down."""
        if not self.experts:
            return [[f"{name}.mlp.{part}_proj" for part in ("gate", "up", "down")]]
        return [[f"{name}.block_sparse_moe.experts.{expert}.{part}" for part in ("w1", "w3", "w2")] for expert in range(self.experts)]

    def feed_forward(self, x, gate, up, down):
        return self[down](functional.silu(self[gate](x)) * self[up](x))

    def mixture(self, x, name):
        tokens = x.flatten(0, 1)
        weights, chosen = self[f"{name}.block_sparse_moe.gate"](tokens).topk(self.active, -1)
        weights = weights.softmax(-1)
        result = torch.zeros_like(tokens)
        for expert, layers in enumerate(self.feed_forwards(name)):
            token, rank = (chosen == expert).nonzero(as_tuple=True)
            part = self.feed_forward(tokens[token], *layers) * weights[token, rank].unsqueeze(-1)
            result = result.index_add(0, token, part.type_as(result))
        return result.view_as(x)

    def block(self, x, name, angles):
        y = self[f"{name}.input_layernorm"](x)
        query = rotated(self[f"{name}.self_attn.q_proj"](y), self.heads, angles)
        key = rotated(self[f"{name}.self_attn.k_proj"](y), self.key_value_heads, angles)
        value = self[f"{name}.self_attn.v_proj"](y)
        x = x + self[f"{name}.self_attn.o_proj"](attention(query, key, value, self.heads, causal=True))
        y = self[f"{name}.post_attention_layernorm"](x)
        return x + (self.mixture(y, name) if self.experts else self.feed_forward(y, *self.feed_forwards(name)[0]))

    def forward(self, tokens, following):
        x = self["model.embed_tokens"](tokens)
        rates = 500_000.0 ** (-torch.arange(0, self.width, 2, device=tokens.device) / self.width)
        angles = torch.outer(torch.arange(tokens.shape[1], device=tokens.device), rates)
        for layer in range(self.layers):
            x = self.block(x, f"model.layers.{layer}", angles)
        logits = self["lm_head"](self["model.norm"](x))
        return functional.cross_entropy(logits.flatten(0, 1), following.flatten())


class Vit(Net):
    PATCH, TOKENS, FEATURES, HEADS, LAYERS = 16, 197, 1024, 16, 24

    def __init__(self, device):
        super().__init__(device)
        d = self.FEATURES
        self.convolution("conv_proj", 3, d, self.PATCH, self.PATCH, 0, bias=True)
        self.vector("class_token", d)
        self.embedding("encoder.pos_embedding", self.TOKENS, d)
        for layer in range(self.LAYERS):
            name = f"encoder.layers.encoder_layer_{layer}"
            self.layer_norm(f"{name}.ln_1", d)
            self.linear(f"{name}.self_attention.in_proj", d, 3 * d)
            self.linear(f"{name}.self_attention.out_proj", d, d)
            self.layer_norm(f"{name}.ln_2", d)
            self.linear(f"{name}.mlp.0", d, 4 * d)
            self.linear(f"{name}.mlp.3", 4 * d, d)
        self.layer_norm("encoder.ln", d)
        self.linear("heads.head", d, 1000)

    def block(self, x, name):
        heads = self[f"{name}.self_attention.in_proj"](self[f"{name}.ln_1"](x)).chunk(3, -1)
        x = x + self[f"{name}.self_attention.out_proj"](attention(*heads, self.HEADS))
        return x + self[f"{name}.mlp.3"](functional.gelu(self[f"{name}.mlp.0"](self[f"{name}.ln_2"](x))))

    def forward(self, images, labels):
        patches = self["conv_proj"](images).flatten(2).transpose(1, 2)
        classes = self["class_token"].expand(len(images), 1, -1).type_as(patches)
        x = torch.cat([classes, patches], 1) + self["encoder.pos_embedding"].weight
        for layer in range(self.LAYERS):
            x = self.block(x, f"encoder.layers.encoder_layer_{layer}")
        return functional.cross_entropy(self["heads.head"](self["encoder.ln"](x)[:, 0]), labels)
