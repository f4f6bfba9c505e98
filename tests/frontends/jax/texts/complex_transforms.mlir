module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4x12xf32>) -> (tensor<3x4x12xf32> {jax.result_info = "result[0]"}, tensor<3x4x12xcomplex<f32>> {jax.result_info = "result[1]"}, tensor<3x4x12xf32> {jax.result_info = "result[2]"}) {
    %0 = call @fft(%arg0) : (tensor<3x4x12xf32>) -> tensor<3x4x12xcomplex<f32>>
    %1 = stablehlo.abs %0 : (tensor<3x4x12xcomplex<f32>>) -> tensor<3x4x12xf32>
    %2 = stablehlo.transpose %arg0, dims = [0, 2, 1] : (tensor<3x4x12xf32>) -> tensor<3x12x4xf32>
    %3 = call @fft_0(%2) : (tensor<3x12x4xf32>) -> tensor<3x12x4xcomplex<f32>>
    %4 = stablehlo.transpose %3, dims = [0, 2, 1] : (tensor<3x12x4xcomplex<f32>>) -> tensor<3x4x12xcomplex<f32>>
    %5 = call @fft_1(%arg0) : (tensor<3x4x12xf32>) -> tensor<3x4x12xcomplex<f32>>
    %6 = stablehlo.real %5 : (tensor<3x4x12xcomplex<f32>>) -> tensor<3x4x12xf32>
    return %1, %4, %6 : tensor<3x4x12xf32>, tensor<3x4x12xcomplex<f32>>, tensor<3x4x12xf32>
  }
  func.func private @fft(%arg0: tensor<3x4x12xf32>) -> tensor<3x4x12xcomplex<f32>> {
    %0 = stablehlo.convert %arg0 : (tensor<3x4x12xf32>) -> tensor<3x4x12xcomplex<f32>>
    %1 = stablehlo.fft %0, type = FFT, length = [12] : (tensor<3x4x12xcomplex<f32>>) -> tensor<3x4x12xcomplex<f32>>
    return %1 : tensor<3x4x12xcomplex<f32>>
  }
  func.func private @fft_0(%arg0: tensor<3x12x4xf32>) -> tensor<3x12x4xcomplex<f32>> {
    %0 = stablehlo.convert %arg0 : (tensor<3x12x4xf32>) -> tensor<3x12x4xcomplex<f32>>
    %1 = stablehlo.fft %0, type = IFFT, length = [4] : (tensor<3x12x4xcomplex<f32>>) -> tensor<3x12x4xcomplex<f32>>
    return %1 : tensor<3x12x4xcomplex<f32>>
  }
  func.func private @fft_1(%arg0: tensor<3x4x12xf32>) -> tensor<3x4x12xcomplex<f32>> {
    %0 = stablehlo.convert %arg0 : (tensor<3x4x12xf32>) -> tensor<3x4x12xcomplex<f32>>
    %1 = stablehlo.fft %0, type = FFT, length = [4, 12] : (tensor<3x4x12xcomplex<f32>>) -> tensor<3x4x12xcomplex<f32>>
    return %1 : tensor<3x4x12xcomplex<f32>>
  }
}
